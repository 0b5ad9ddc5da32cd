"""What an idle stack costs: how long until it is ready, how much memory it holds, how much processor time it takes.

    python -m tests.bench.bench_footprint [--idle 10] [--json]

Both layouts, one after the other. `first` is a start on an empty directory (a database is made), `again` one on the
same data. Memory is read after the idle time, without the local providers. `resident` is the sum of what each process
holds; `own` counts pages that several share (the database's buffers) once. Promised for the all-in-one: ready within
5 s, under 350 MB resident.
"""

import argparse
import asyncio
import json
import time
from dataclasses import asdict, dataclass

from tests.e2e.scenery import setting
from tests.support import processes
from tests.support.stack import AllInOne, SevenProcesses, Stack, running

MB = 1024 * 1024

LAYOUTS: dict[str, type[Stack]] = {"all-in-one": AllInOne, "seven processes": SevenProcesses}
HEADS = ("layout", "first s", "again s", "resident MB", "own MB", "python MB", "database MB", "idle CPU %", "processes")


@dataclass
class Row:
    """One line of the table; times in seconds, memory in MB."""

    layout: str
    first_s: float
    again_s: float
    resident_mb: float
    own_mb: float
    python_mb: float
    database_mb: float
    idle_cpu_percent: float
    processes: int


async def seconds_until_ready(stack: Stack) -> float:
    """Time of one start of the product; its providers answer already."""
    await stack.start_providers()
    begun = time.monotonic()
    await stack.start_product()
    return time.monotonic() - begun


async def measure(name: str, kind: type[Stack], idle_s: float) -> Row:
    """Start, stop, start again, stay idle, look."""
    async with running(kind, setting(), start=False, prepared=False) as stack:
        first = await seconds_until_ready(stack)
        await stack.stop()
        again = await seconds_until_ready(stack)
        await asyncio.sleep(idle_s / 2)
        pids = stack.product_pids()
        before = processes.cpu_seconds(pids)
        await asyncio.sleep(idle_s / 2)
        busy = processes.cpu_seconds(pids) - before
        database = {pid for pid in pids if processes.program(pid) == "postgres"}
        return Row(
            layout=name,
            first_s=round(first, 2),
            again_s=round(again, 2),
            resident_mb=round(processes.resident_bytes(pids) / MB, 1),
            own_mb=round(processes.own_bytes(pids) / MB, 1),
            python_mb=round(processes.resident_bytes(pids - database) / MB, 1),
            database_mb=round(processes.own_bytes(database) / MB, 1),
            idle_cpu_percent=round(100 * busy / (idle_s / 2), 1),
            processes=len(pids),
        )


async def main(idle_s: float, as_json: bool) -> None:
    """Print a table, or one JSON object a line."""
    rows = [await measure(name, kind, idle_s) for name, kind in LAYOUTS.items()]
    if as_json:
        for row in rows:
            print(json.dumps(asdict(row)))
        return
    print(" | ".join(HEADS))
    for row in rows:
        print(" | ".join(str(value).rjust(len(head)) for head, value in zip(HEADS, asdict(row).values(), strict=True)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=float, default=10.0, help="seconds to stay idle")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asyncio.run(main(options.idle, options.json))

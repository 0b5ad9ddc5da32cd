"""What a synchronous call costs beside going straight to the provider (PRF-1), plain and streamed.

    python -m tests.bench.bench_gateway [--seconds 5] [--at 1,16,64] [--only NAME,…] [--peers] [--json]

One provider on loopback answers at once: JSON, or a stream of 20 pieces. The same load goes to it directly, through a
server that only passes on (the floor), through the product with every check on, and with `--peers` through LiteLLM's
proxy and Portkey's gateway (installed into `.build/peers` when missing). `added` is the median (p50) and the 99th
percentile (p99) over those of `direct`. Processor time is that of the gateway's whole process tree, its database
included, without the provider and the load. Provider, load and gateway share the machine, so requests a second compare
only within one run; rows that failed say so.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.gateways.places import PLACES, Door, provider
from tests.support import processes

WARM_S = 1.0
OURS = ("direct", "pass-through", "pointsman")
HEADS = ("through", "shape", "at once", "requests/s", "added p50 ms", "added p99 ms", "CPU s per 1,000", "PSS MB")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    through: str
    shape: str
    at_once: int
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_s_per_1000: float
    pss_mb: float
    failures: int
    first_failure: str


def load(door: Door, at_once: int, seconds: float, shape: str) -> dict[str, Any]:
    """One load, in a process of its own."""
    words = [door.url, door.model, door.key, str(at_once), str(seconds), shape, json.dumps(dict(door.headers))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gateways.load", *words],
        cwd=processes.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(name: str, door: Door, shape: str, at_once: int, seconds: float) -> Row:
    """Warm up, load, look."""
    load(door, at_once, WARM_S, shape)
    before = door.cpu_seconds()
    seen = load(door, at_once, seconds, shape)
    busy = door.cpu_seconds() - before
    count = max(1, seen["answers"])
    return Row(
        through=name,
        shape=shape,
        at_once=at_once,
        per_s=round(seen["answers"] / seen["seconds"], 1),
        p50_ms=seen["p50_ms"],
        p99_ms=seen["p99_ms"],
        cpu_s_per_1000=round(1000 * busy / count, 3),
        pss_mb=round(processes.own_bytes(processes.tree(door.pid)) / 2**20, 1) if door.pid else 0.0,
        failures=seen["failures"],
        first_failure=seen["first_failure"],
    )


def run(names: list[str], at: list[int], shapes: list[str], seconds: float) -> list[Row]:
    """Every place with every load, one after the other."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="pm-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        with provider(folder) as upstream:
            for name in names:
                with PLACES[name](folder, upstream) as door:
                    rows += [measure(name, door, shape, count, seconds) for shape in shapes for count in at]
    return rows


def show(rows: list[Row]) -> None:
    """The table, latencies beside those of `direct` in the same run."""
    straight = {(row.shape, row.at_once): row for row in rows if row.through == "direct"}
    print(" | ".join(HEADS))
    for row in rows:
        bare = straight.get((row.shape, row.at_once))
        added = [row.p50_ms - bare.p50_ms, row.p99_ms - bare.p99_ms] if bare else [row.p50_ms, row.p99_ms]
        figures = [row.per_s, *(f"{value:.2f}" for value in added), row.cpu_s_per_1000, row.pss_mb]
        line = [row.through.ljust(12), row.shape.ljust(6), row.at_once, *figures]
        print(" | ".join(str(cell).rjust(len(head)) for cell, head in zip(line, HEADS, strict=True)))
        if row.failures:
            print(f"    {row.failures} failed: {row.first_failure}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--at", default="1,16,64", help="requests in flight")
    parser.add_argument("--shapes", default="plain,stream")
    parser.add_argument("--only", default="", help=f"some of {', '.join(PLACES)}")
    parser.add_argument("--peers", action="store_true", help="LiteLLM and Portkey too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else [*OURS, *(PLACES.keys() - set(OURS) if options.peers else ())]
    table = run(chosen, [int(count) for count in options.at.split(",")], options.shapes.split(","), options.seconds)
    if options.json:
        for row in table:
            print(json.dumps(asdict(row)))
    else:
        show(table)

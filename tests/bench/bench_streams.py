"""What open event streams cost (PRF-6): memory each, and the time from an event to its bytes at every reader.

    python -m tests.bench.bench_streams [--streams 1000] [--runs 10] [--events 40] [--json]

Streams are spread evenly over Runs; each event is one Run's, and all streams of that Run are waited for. `to bytes` is
from the event's `created_at` to the moment when the client holds its last byte: in the product the commit to a disk
with fsync lies in between, in the floor (a queue for each stream, nothing kept) nothing does. Processor time is that of
the server's whole process tree, its database included; idle is with all streams open and no event. Server and client
share the machine: compare rows only within one run.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from cli.demo.stage import free_ports
from tests.bench.gateways.places import ADMIN_KEY, Door, answers, child, ours
from tests.support import processes

HEADS = (
    "server", "streams", "KiB a stream", "to bytes p50 ms", "p99 ms", "to the last p50 ms", "CPU ms an event",
    "idle CPU ms a second",
)  # fmt: skip
AT_ONCE = 50
IDLE_S = 5.0
WAITS = {"production": "streams", "nodes": [{"id": "gate", "kind": "gate", "subject": {"what": "nothing"}}]}
AS_ADMIN = {"Authorization": f"Bearer {ADMIN_KEY}"}


@dataclass
class Row:
    """One line of the table."""

    server: str
    streams: int
    kib_a_stream: float
    p50_ms: float
    p99_ms: float
    last_p50_ms: float
    cpu_ms_an_event: float
    idle_cpu_ms_a_second: float


class Reader:
    """One open stream, and how late each event was."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []
        self.open = asyncio.Event()
        self.news = asyncio.Event()

    async def read(self, session: aiohttp.ClientSession, url: str) -> None:
        """Until cancelled."""
        async with session.get(url) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"data: "):
                    made = datetime.fromisoformat(json.loads(line[6:])["created_at"]).timestamp()
                    self.late_ms.append(1000 * (time.time() - made))
                    self.news.set()
                self.open.set()


@contextmanager
def bare(folder: Path, upstream: str) -> Iterator[Door]:
    """The floor."""
    (port,) = free_ports(1)
    arguments = [sys.executable, "-m", "tests.bench.gateways.bare_streams", str(port)]
    with child(arguments, folder / "bare.log", {}, answers(port)) as pid:
        yield Door(f"http://127.0.0.1:{port}", "", "", pid)


async def topics(session: aiohttp.ClientSession, base: str, server: str, count: int) -> list[str]:
    """The ids of what is listened to: Runs that wait for a person, or just names."""
    if server == "floor":
        return [f"topic-{number}" for number in range(count)]
    made = []
    for _ in range(count):
        async with session.post(f"{base}/v1/runs", json={"production": WAITS}) as answer:
            answer.raise_for_status()
            made.append(str((await answer.json())["id"]))
    return made


async def told(session: aiohttp.ClientSession, run: str, readers: Sequence[Reader]) -> list[float]:
    """One event: how late it was at each reader."""
    for reader in readers:
        reader.news.clear()
        reader.late_ms.clear()
    async with session.post(f"{run}/steer", json={"kind": "style", "data": {"text": "softer"}}) as answer:
        answer.raise_for_status()
    await asyncio.gather(*(reader.news.wait() for reader in readers))
    return [reader.late_ms[0] for reader in readers]


def weighed(door: Door) -> int:
    """Bytes of the server's processes without its database, whose buffers fill as they please."""
    return processes.own_bytes({pid for pid in processes.tree(door.pid) if processes.program(pid) != "postgres"})


async def measure(server: str, door: Door, given: argparse.Namespace) -> Row:
    """Open, weigh, be idle, tell."""
    base = door.url.partition("/v1/")[0]
    unlimited = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=unlimited, headers=AS_ADMIN, timeout=aiohttp.ClientTimeout()) as session:
        runs = [f"{base}/v1/runs/{topic}" for topic in await topics(session, base, server, given.runs)]
        readers = [Reader() for _ in range(given.streams)]
        before = weighed(door)
        reading: list[asyncio.Task[Any]] = []
        for first in range(0, given.streams, AT_ONCE):
            wave = readers[first : first + AT_ONCE]
            reading += [
                asyncio.create_task(reader.read(session, f"{runs[number % given.runs]}/stream"))
                for number, reader in enumerate(wave, first)
            ]
            await asyncio.gather(*(reader.open.wait() for reader in wave))
        weight = weighed(door) - before
        busy = door.cpu_seconds()
        await asyncio.sleep(IDLE_S)
        idle = (door.cpu_seconds() - busy) / IDLE_S
        late, last, busy = [], [], door.cpu_seconds()
        for number in range(given.events):
            place = number % given.runs
            seen = await told(session, runs[place], readers[place :: given.runs])
            late += seen
            last.append(max(seen))
        busy = door.cpu_seconds() - busy
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    late.sort()
    last.sort()
    return Row(
        server=server,
        streams=given.streams,
        kib_a_stream=round(weight / 1024 / given.streams, 1),
        p50_ms=round(late[len(late) // 2], 2),
        p99_ms=round(late[len(late) * 99 // 100], 2),
        last_p50_ms=round(last[len(last) // 2], 2),
        cpu_ms_an_event=round(1000 * busy / given.events, 2),
        idle_cpu_ms_a_second=round(1000 * idle, 1),
    )


def main(given: argparse.Namespace) -> None:
    """Print a table, or one JSON object a line."""
    if not given.json:
        print(" | ".join(HEADS))
    for server, place in (("floor", bare), ("pointsman", ours)):
        with tempfile.TemporaryDirectory() as folder, place(Path(folder), "http://127.0.0.1:9") as door:
            row = asdict(asyncio.run(measure(server, door, given)))
        if given.json:
            print(json.dumps(row), flush=True)
        else:
            print(" | ".join(str(v).rjust(len(h)) for h, v in zip(HEADS, row.values(), strict=True)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--events", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    main(parser.parse_args())

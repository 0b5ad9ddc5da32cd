"""Whether the durable queue stays as fast with a million Tasks waiting, and under an old snapshot (PRF-5).

    python -m tests.bench.bench_queue [--waiting 1000000] [--tasks 4000] [--rounds 3] [--held 20000] [--json]

The store alone, on a real PostgreSQL that waits for the disk: Tasks are claimed 32 at a time, each commits its intent
and its end, and for each that ends another one is added, so that as many wait as before. The queues of a thousand and
of a million take turns within the run; then the shorter one works on while another session holds a transaction open
from before, so that nothing that is deleted or replaced meanwhile can be cleaned.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.migrations import migrate
from services.routing.compose import SCHEMA, VERSIONS
from services.routing.domain import transitions
from services.routing.domain.request import Request
from services.routing.domain.task import Attempt, AttemptState, Task, TaskState
from services.routing.ports import Lane, Write
from services.routing.store.tasks_postgres import PostgresTasks

BATCH, IN_HAND = 32, 64
LEASE = timedelta(seconds=60)
ZERO = Money.zero("CNY")
COPIES = """
INSERT INTO routing.tasks SELECT (jsonb_populate_record(t, jsonb_build_object(
  'id', 'filler-' || n, 'tag', t.tag + n * 0.5))).* FROM routing.tasks t, generate_series(1, $1::int) n WHERE t.id = $2
"""
READY = "INSERT INTO routing.ready SELECT id, tag FROM routing.tasks WHERE id LIKE 'filler-%'"


@dataclass
class Queue:
    """A store with so many Tasks waiting."""

    store: PostgresTasks
    numbers: Iterator[int]
    name: str

    async def add(self) -> None:
        """One more Task."""
        asked = Request(tenant="bench", model="clip", input={"prompt": "a boat on a lake", "duration_s": 5})
        task_id = f"{self.name}-{next(self.numbers)}"
        await self.store.add(Task(task_id, asked, "video", TaskState.QUEUED, datetime.now(UTC), ZERO))

    async def live(self, task: Task) -> None:
        """The intent, the end, and another Task in its place."""
        now = datetime.now(UTC)
        begun = transitions.submitting(task, _attempt(task, now), now, now + LEASE)
        saved = await self.store.save(Write(task, begun, now, until=now + LEASE, unless_stopped=True))
        ended = transitions.attempt_ended(saved, saved.attempts[-1], AttemptState.SUCCEEDED, now, cost=ZERO)
        await self.store.save(Write(saved, transitions.cancelled(ended, now), now))
        await self.add()

    async def work(self, tasks: int) -> list[float]:
        """Tasks a second, for each tenth of so many."""
        speeds: list[float] = []
        in_hand: set[asyncio.Task[None]] = set()
        begun = done = 0
        mark, at = 0, time.perf_counter()
        while done < tasks:
            if len(in_hand) <= IN_HAND - BATCH and begun < tasks:
                now = datetime.now(UTC)
                for task in await self.store.claim(Lane.DISPATCH, "bench", BATCH, now, now + LEASE):
                    in_hand.add(asyncio.ensure_future(self.live(task)))
                    begun += 1
            ended, in_hand = await asyncio.wait(in_hand, return_when=asyncio.FIRST_COMPLETED)
            done += len(ended)
            for task in ended:
                task.result()
            if done - mark >= tasks // 10:
                speeds.append((done - mark) / (time.perf_counter() - at))
                mark, at = done, time.perf_counter()
        return speeds


def _attempt(task: Task, now: datetime) -> Attempt:
    name = f"{task.id}-{task.epoch}"
    return Attempt(
        name, task.id, len(task.attempts) + 1, "a/clip", "a", AttemptState.RESERVED, name, task.epoch, 1, ZERO, name,
        input=task.request.input, reserved_at=now,
    )  # fmt: skip


async def opened(server: EmbeddedPostgres, name: str, waiting: int) -> Queue:
    """A database of its own with that many Tasks waiting."""
    admin = await asyncpg.connect(server.url)
    await admin.execute(f'CREATE DATABASE "{name}"')
    await admin.close()
    url = server.url_of(name)
    await migrate(url, schema=SCHEMA, versions=VERSIONS)
    queue = Queue(PostgresTasks(Database(url, schema=SCHEMA)), itertools.count(), name)
    await asyncio.gather(*(queue.add() for _ in range(200)))
    filler = await asyncpg.connect(url)
    await filler.execute(COPIES, waiting - 200, f"{name}-199", timeout=600)
    await filler.execute(READY, timeout=600)
    await filler.execute("VACUUM ANALYZE", timeout=600)
    await filler.close()
    return queue


async def held_open(server: EmbeddedPostgres, queue: Queue, tasks: int) -> tuple[float, float]:
    """(free speed, speed of the last tenth under an old snapshot)."""
    free = statistics.median(await queue.work(tasks // 4))
    holder = await asyncpg.connect(server.url_of(queue.name))
    async with holder.transaction(isolation="repeatable_read"):
        await holder.fetchval("SELECT count(*) FROM routing.lines")
        speeds = await queue.work(tasks)
    await holder.close()
    return free, speeds[-1]


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every figure."""
    with tempfile.TemporaryDirectory(prefix="pointsman-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with EmbeddedPostgres(folder / "pg", settings={"max_wal_size": "4GB"}) as server:
            short = await opened(server, "short", 1000)
            long = await opened(server, "long", options.waiting)
            speeds: dict[str, list[float]] = {"short": [], "long": []}
            for queue in (short, long):
                await queue.work(500)  # warm
            for _ in range(options.rounds):
                for queue in (short, long):
                    speeds[queue.name] += await queue.work(options.tasks)
            free, last = await held_open(server, short, options.held)
            for queue in (short, long):
                await queue.store.close()
                await queue.store._database.close()
    few, many = statistics.median(speeds["short"]), statistics.median(speeds["long"])
    return {
        "waiting 1,000: tasks/s": round(few),
        f"waiting {options.waiting:,}: tasks/s": round(many),
        "ratio": round(many / few, 2),
        "free: tasks/s": round(free),
        f"transaction held open, last tenth of {options.held:,}: tasks/s": round(last),
        "ratio held": round(last / free, 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The durable queue with many waiting and under an old snapshot.")
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(measure(options))
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:60} {figure:>12,}")


if __name__ == "__main__":
    main()

"""Streams over real replicas and a real database: many at once, and clients that lose them again and again.

In the small size with every run of CI, in the large one by `make drills`.
"""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from libs.store.database import Database
from libs.store.engine import Bounds
from services.runs.domain.desks import DeskChanges
from services.runs.domain.run import Draft, RunState
from services.runs.store.postgres import PostgresRuns
from tests.support.front import ADMIN_KEY, Replica, front
from tests.support.waiting import eventually, eventually_async
from tests.support.worlds import CountedIds

DRILL = bool(os.environ.get("POINTSMAN_DRILLS"))
STREAMS = 1000 if DRILL else 100
CLIENTS, EVENTS = (20, 90) if DRILL else (3, 40)
POOL = Bounds().pool_size + Bounds().max_overflow
ORDER = {"model": "clip", "input": {"prompt": "a crane at dawn", "duration_s": 5}}


@pytest.fixture
async def two(pg_url: str, tmp_path: Path) -> AsyncIterator[list[Replica]]:
    """Two replicas, without Valkey."""
    async with front(pg_url, tmp_path, replicas=2) as replicas:
        yield replicas


@dataclass
class Stream:
    """One connection to a stream, at the level of ASGI. It is cut once `most` bytes have come, or by `leave`."""

    replica: Replica
    run_id: str
    after: int = 0
    most: int = 1 << 30
    status: int = 0
    received: bytes = b""
    _cut: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: bool = False

    async def run(self) -> None:
        """Until the server closes it or it is cut."""
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/v1/runs/{self.run_id}/stream",
            "query_string": b"",
            "headers": [
                (b"authorization", f"Bearer {ADMIN_KEY}".encode()),
                (b"last-event-id", str(self.after).encode()),
            ],
        }
        await self.replica.edge.app(scope, self._receive, self._send)

    def leave(self) -> None:
        """Break the connection."""
        self._cut.set()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What came whole: an event ends with an empty line."""
        whole = self.received.rpartition(b"\n\n")[0].decode()
        return [json.loads(line[6:]) for line in whole.split("\n") if line.startswith("data: ")]

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._cut.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.received = (self.received + message.get("body", b""))[: self.most]
        if len(self.received) >= self.most:
            self.leave()


async def made(replica: Replica) -> str:
    """The id of a new Run."""
    async with replica.visitor() as client:
        return str((await client.post("/v1/runs", json=ORDER)).json()["id"])


async def test_idle_streams_hold_no_connection(two: list[Replica], pg_url: str) -> None:
    """SSE-4: a thousand idle streams need a pool of ten and hold none of it; who leaves cancels nothing."""
    assert POOL == 10
    runs = [await made(two[0]) for _ in range(10)]
    streams = [Stream(two[0], runs[number % len(runs)]) for number in range(STREAMS)]
    tasks: list[asyncio.Task[None]] = []
    connection = await asyncpg.connect(pg_url)
    busy = "SELECT count(*) FILTER (WHERE state <> 'idle'), count(*) FROM pg_stat_activity WHERE datname ="
    busy += " current_database() AND application_name IN ('pointsman-runs', 'pointsman-edge')"

    async def none_is_held() -> bool:
        held, pooled = await connection.fetchrow(busy)
        assert pooled <= 2 * 2 * POOL, "two contexts of two replicas"
        return not held

    try:
        for first in range(0, STREAMS, POOL):  # opening is no idleness: who waits long for a connection is refused
            wave = streams[first : first + POOL]
            tasks += [asyncio.create_task(stream.run()) for stream in wave]
            await eventually(lambda wave=wave: all(stream.events for stream in wave), 60)
        for _ in range(5):
            await eventually_async(none_is_held)
        assert not any(task.done() for task in tasks)
        for stream in streams[len(runs) :]:
            stream.leave()
        await asyncio.gather(*tasks[len(runs) :])
        async with two[0].visitor() as client:
            for run_id in runs:
                assert (await client.get(f"/v1/runs/{run_id}")).json()["status"] in ("pending", "running")
                assert (await client.post(f"/v1/runs/{run_id}/cancel")).status_code == 202
        await asyncio.gather(*tasks)
    finally:
        for stream in streams:
            stream.leave()
        await asyncio.gather(*tasks)
        await connection.close()
    for stream in streams[: len(runs)]:
        sequences = [event["sequence"] for event in stream.events]
        assert sequences == list(range(1, len(sequences) + 1))
        assert stream.events[-1]["kind"] == "run_cancelled"


async def test_a_stream_that_breaks_again_and_again(two: list[Replica], pg_url: str) -> None:
    """SSE-3: over a thousand broken connections, to either replica, clients see every event once, in order."""
    run_id = await made(two[0])
    chance = random.Random(7)
    writing = asyncio.create_task(_written(pg_url, run_id))
    found = await asyncio.gather(*(_follow(two, run_id, random.Random(chance.random())) for _ in range(CLIENTS)))
    last = await writing
    for seen, _ in found:
        assert seen == list(range(1, last + 1))
    breaks = sum(count for _, count in found)
    assert breaks >= (1000 if DRILL else 50), breaks


async def _follow(replicas: list[Replica], run_id: str, chance: random.Random) -> tuple[list[int], int]:
    """(sequences in the order in which they came, how often the connection broke) of one client."""
    seen: list[int] = []
    breaks = 0
    while True:
        stream = Stream(chance.choice(replicas), run_id, seen[-1] if seen else 0, chance.randrange(1, 700))
        await stream.run()
        events = stream.events
        seen += [event["sequence"] for event in events]
        if stream.status == 204 or (events and events[-1]["kind"] == "run_completed"):
            return seen, breaks
        assert stream.status == 200
        breaks += 1


async def _written(url: str, run_id: str) -> int:
    """Adds events to the Run and ends it; the last sequence."""
    database = Database(url, schema="runs")
    store = PostgresRuns(database, CountedIds())
    try:
        for number in range(EVENTS + 1):
            ends = number == EVENTS
            saved = None
            while saved is None:  # the replicas write too
                run = await store.get(run_id)
                assert run is not None
                draft = Draft("run_completed" if ends else "node_waiting", {"n": number})
                after = replace(run, state=RunState.SUCCEEDED) if ends else run
                saved = await store.save(after, [draft], datetime.now(UTC), DeskChanges())
        return saved.last_sequence
    finally:
        await database.close()


async def test_a_cursor_that_cannot_be(two: list[Replica]) -> None:
    """SSE-5: a cursor that is no whole number, or lies ahead of what was committed, is 400 at every replica."""
    run_id = await made(two[0])
    async with two[1].visitor() as client:
        for cursor in ("x", "-1", "1.5", "99"):
            for path in (f"/v1/runs/{run_id}/stream", f"/v1/runs/{run_id}/events"):
                answer = await client.get(path, params={"after": cursor})
                assert (answer.status_code, answer.json()["code"]) == (400, "malformed_request")

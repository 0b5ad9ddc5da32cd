"""/v1/runs/{id}/stream: the events of a Run as they are committed (SSE-1..5).

Laws of this file:
- what is sent was committed before; sequences rise by 1; the cursor is the sequence, on every replica;
- a stream holds no connection to any database: it reads from runs, which reads in short turns;
- a client that leaves ends its stream and nothing else;
- a stream ends at a terminal event or `run_paused`, when its key no longer holds, or when this server drains: then with
  a comment, and the client comes back with its cursor.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.responses import Response

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.telemetry.metrics import Metrics
from services.edge.app.authenticate import Authenticator, Caller
from services.edge.app.reveal import Reveal
from services.edge.domain import queries, shapes
from services.edge.domain.open_limits import Hold
from services.edge.ports import Runs
from services.edge.routes.answers import nothing
from services.edge.routes.event_stream import EVENT_STREAM, EventStream
from services.edge.routes.operations import USERS, Asked, Operation, Parameter
from services.edge.routes.runs import AFTER

RETRY_MS = 2000
FINISHED = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter"})
Feed = AsyncGenerator[list[shapes.RunEvent], None]
_encode = msgspec.json.Encoder().encode


def spell(event: shapes.RunEvent) -> bytes:
    """One event in the form of the HTML standard; JSON holds no line break, so one `data:` line carries it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.sequence, event.kind.encode(), _encode(event))


class StreamRoutes:
    """The handler with what it needs. `draining` is set when this server wants to stop."""

    def __init__(
        self,
        runs: Runs,
        reveal: Reveal,
        authenticator: Authenticator,
        clock: Clock,
        metrics: Metrics,
        draining: asyncio.Event,
        *,
        heartbeat_s: float,
        check_s: float,
    ) -> None:
        self._runs = runs
        self._reveal = reveal
        self._authenticator = authenticator
        self._clock = clock
        self._metrics = metrics
        self._draining = draining
        self._heartbeat_s = heartbeat_s
        self._check_s = check_s

    async def stream(self, asked: Asked) -> Response:
        """200 with the stream, or 204 for a finished Run with nothing newer (SSE-2)."""
        header = asked.request.headers.get("last-event-id")
        after = queries.cursor(header or asked.query("after"), "Last-Event-ID" if header else "after")
        run_id = asked.path("run_id")
        run, newest = await self._runs.get(asked.tenant, run_id)
        if after > newest:
            raise Fault.of("malformed_request", f"cursor {after} lies ahead of the newest event, {newest}")
        if run.status in FINISHED and after == newest:
            return nothing()
        if run.status in FINISHED:  # whose history may be pruned: a status can be told only before the stream begins
            await self._runs.events(asked.tenant, run_id, after, 1)
        feed = self._runs.follow(asked.tenant, run_id, after)
        return EventStream(self._lines(asked.caller, feed), self._metrics)

    async def _lines(self, caller: Caller, feed: Feed) -> AsyncGenerator[bytes, None]:
        """The text of the stream, piece by piece."""
        yield b"retry: %d\n\n" % RETRY_MS
        turns = _Turns(feed, self._draining, self._clock)
        written = self._clock.monotonic()
        try:
            while True:
                turn = await turns.next(min(self._check_s, self._heartbeat_s))
                if isinstance(turn, list):
                    await self._reveal.events(caller.tenant, turn)
                    yield b"".join(spell(event) for event in turn)
                    written = self._clock.monotonic()
                elif turn == "ended":
                    return
                elif turn == "draining":
                    yield b": this server is stopping; come back with the last id\nretry: 500\n\n"
                    return
                elif not await self._authenticator.still(caller):
                    yield b": the key was revoked or has expired\n\n"
                    return
                elif self._clock.monotonic() - written >= self._heartbeat_s:
                    yield b": heartbeat\n\n"
                    written = self._clock.monotonic()
        finally:
            await turns.close()

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        cursor = Parameter("Last-Event-ID", "Resume after this sequence.", AFTER.schema, where="header")
        return (
            Operation(
                "streamRunEvents", "GET", "/v1/runs/{run_id}/stream", self.stream,
                "Server-sent events, until the Run is terminal or paused; 204 when it is finished and nothing is new.",
                USERS, media=EVENT_STREAM, parameters=(cursor, AFTER), also=(204,), head=False, holds=Hold.STREAM,
                codes=("malformed_request", "not_found", "history_pruned"),
            ),
        )  # fmt: skip


class _Turns:
    """What happens next: a batch of events, the end of the feed, the wish to drain, or a turn of the clock."""

    def __init__(self, feed: Feed, draining: asyncio.Event, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self._batch: asyncio.Task[Any] | None = None
        self._drain = asyncio.create_task(draining.wait())

    async def next(self, within_s: float) -> "list[shapes.RunEvent] | str":
        """A batch, "ended", "draining" or "tick". A feed that breaks is "ended": the client resumes by its cursor."""
        if self._batch is None:
            self._batch = asyncio.create_task(anext(self._feed, None))
        tick = asyncio.create_task(self._clock.sleep(within_s))
        try:
            await asyncio.wait({self._batch, self._drain, tick}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tick.cancel()
        if self._batch.done():
            batch, self._batch = self._batch, None
            if isinstance(batch.exception(), Fault):
                return "ended"
            found: list[shapes.RunEvent] | None = batch.result()
            return "ended" if found is None else found
        return "draining" if self._drain.done() else "tick"

    async def close(self) -> None:
        """Give up the feed; what is upstream of it is cancelled."""
        tasks = [task for task in (self._batch, self._drain) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._feed.aclose()

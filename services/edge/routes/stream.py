"""/v1/runs/{id}/stream: the events of a Run as they are committed (SSE-1..5).

Laws of this file:
- what is sent was committed before; sequences rise by 1; the cursor is the sequence, on every replica;
- a stream holds no connection to any database: it reads from runs, which reads in short turns, and shares what comes
  with all who read the same Run here; it sleeps until there is something to write;
- a client that leaves ends its stream and nothing else;
- a stream ends at a terminal event or `run_paused`, when its key no longer holds, or when this server drains: then with
  a comment, and the client comes back with its cursor.
"""

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import Response

from libs.faults.fault import Fault
from libs.telemetry.metrics import Metrics
from services.edge.app.authenticate import Caller
from services.edge.app.shared_feeds import SharedFeeds
from services.edge.app.stream_watch import StreamWatch
from services.edge.domain import event_frames, queries
from services.edge.domain.open_limits import Hold
from services.edge.ports import Runs
from services.edge.routes.answers import nothing
from services.edge.routes.event_stream import EVENT_STREAM, EventStream
from services.edge.routes.operations import USERS, Asked, Operation, Parameter
from services.edge.routes.runs import AFTER

FINISHED = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter"})


class StreamRoutes:
    """The handler with what it needs."""

    def __init__(self, runs: Runs, feeds: SharedFeeds, watch: StreamWatch, metrics: Metrics) -> None:
        self._runs = runs
        self._feeds = feeds
        self._watch = watch
        self._metrics = metrics

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
        return EventStream(self._pieces(asked.caller, run_id, after, newest), self._metrics)

    async def _pieces(self, caller: Caller, run_id: str, after: int, newest: int) -> AsyncGenerator[bytes, None]:
        """The text of the stream. Where no more of the events can be had it ends: the client resumes by its cursor."""
        bell = asyncio.Event()
        reading = self._feeds.reading(caller.tenant, run_id, after, newest, bell)
        with reading as reader, self._watch.seat(caller, bell) as seat:
            yield event_frames.BEGINNING
            while True:
                bell.clear()  # before anything is looked at: what comes meanwhile is looked at again
                if seat.revoked:
                    yield event_frames.REVOKED
                    return
                if self._watch.draining:
                    yield event_frames.DRAINING
                    return
                try:
                    piece = await reader.take()
                except Fault:
                    return
                if piece is None:
                    return
                if not piece and not seat.silent:
                    await bell.wait()
                    continue
                yield piece or event_frames.HEARTBEAT
                self._watch.wrote(seat)

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

"""An answer that is said while it is being made: events in their time, to a caller who may leave in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.studio.domain.chat import Chunk
from services.studio.domain.jobs import ABANDONED, FAILED, SUCCEEDED
from services.studio.domain.pace import Pace
from services.studio.domain.script import NEVER, Step
from services.studio.routes.connection import cut, left

UNKNOWN = 10**9
"""The length of an answer that nobody knows yet."""


class Live(Response):
    """A stream of server-sent events.

    `settle` is called once, whatever happens, with how it ended and how many tokens had been said; nothing more is made
    after the caller hung up. `error` is the event that breaks the stream off where `step` says so.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[Chunk, None],
        pace: Pace,
        step: Step,
        error: bytes,
        settle: Callable[[str, int], None],
        total: int = UNKNOWN,
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache"}, media_type="text/event-stream")
        self.raw_headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        self._chunks = chunks
        self._pace = pace
        self._step = step
        self._error = error
        self._settle = settle
        self._total = total

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(left(receive))
        self._said, self._end = 0, FAILED
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with aclosing(self._chunks):
                last = await self._tell(leaving, send)
            if last is not None:
                await send({"type": "http.response.body", "body": last})
            elif self._end == FAILED:
                leaving.cancel()
                await cut(scope, receive)
        finally:
            leaving.cancel()
            self._settle(self._end, self._said)

    async def _tell(self, leaving: asyncio.Future[None], send: Send) -> bytes | None:
        """Says one event after the other; the bytes that end the stream, or None where it has no end."""
        flow, begun = self._step.flow, asyncio.get_running_loop().time()
        while (chunk := await self._next(leaving)) is not None:
            if _reached(flow.cut_after, self._said, self._total):
                return None
            if _reached(flow.error_after, self._said, self._total):
                return self._error
            if await self._gone(leaving, begun + self._pace.due(self._said + chunk.tokens)):
                self._end = ABANDONED
                return None
            if self._step.garble and chunk.tokens:
                return chunk.data[: len(chunk.data) // 2] + b"\n\n"
            await send({"type": "http.response.body", "body": chunk.data, "more_body": True})
            self._said += chunk.tokens
        if leaving.done() and self._said < self._total:
            self._end = ABANDONED
            return None
        self._end = SUCCEEDED
        return b""

    async def _next(self, leaving: asyncio.Future[None]) -> Chunk | None:
        """The next event; None after the last one, and when the caller hung up while it was being made."""
        making = asyncio.ensure_future(anext(self._chunks, None))
        try:
            both: set[asyncio.Future[Any]] = {making, leaving}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return making.result() if making.done() else None
        finally:
            if not making.done():
                making.cancel()
                await asyncio.wait({making})

    async def _gone(self, leaving: asyncio.Future[None], due: float) -> bool:
        """Waits until it is time; True when the caller has hung up by then."""
        pause = due - asyncio.get_running_loop().time()
        if pause > 0:
            await asyncio.wait({leaving}, timeout=pause)
        return leaving.done()


async def in_turn(chunks: Iterable[Chunk]) -> AsyncGenerator[Chunk, None]:
    """Events that are all there already."""
    for chunk in chunks:
        yield chunk


def _reached(mark: int, said: int, total: int) -> bool:
    """Whether the fault's place has come: before anything for 0, else once so many tokens (or all) are said."""
    return mark != NEVER and said >= min(mark, total)

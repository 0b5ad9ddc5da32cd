"""An answer that is said while it is being made: events in their time, to a caller who may leave in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.studio.domain.chat import Chunk
from services.studio.domain.jobs import ABANDONED, FAILED, SUCCEEDED
from services.studio.domain.pace import Pace
from services.studio.domain.script import NEVER, Step
from services.studio.routes.connection import cut, left


class Live(Response):
    """A stream of server-sent events.

    `settle` is called once, whatever happens, with how it ended and how many tokens had been said; nothing more is made
    after the caller hung up. `error` is the event that breaks the stream off where `step` says so.
    """

    def __init__(
        self, chunks: Iterable[Chunk], pace: Pace, step: Step, error: bytes, settle: Callable[[str, int], None]
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache"}, media_type="text/event-stream")
        self.raw_headers = [header for header in self.raw_headers if header[0] != b"content-length"]
        self._chunks = list(chunks)
        self._pace = pace
        self._step = step
        self._error = error
        self._settle = settle
        self.body = b"".join(chunk.data for chunk in self._chunks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(left(receive))
        said, end, flow = 0, FAILED, self._step.flow
        begun = asyncio.get_running_loop().time()
        total = sum(chunk.tokens for chunk in self._chunks)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for chunk in self._chunks:
                if _reached(flow.cut_after, said, total):
                    leaving.cancel()
                    return await cut(scope, receive)
                if _reached(flow.error_after, said, total):
                    return await send({"type": "http.response.body", "body": self._error})
                if await self._gone(leaving, begun + self._pace.due(said + chunk.tokens)):
                    end = ABANDONED
                    return None
                if self._step.garble and chunk.tokens:
                    return await send(
                        {"type": "http.response.body", "body": chunk.data[: len(chunk.data) // 2] + b"\n\n"}
                    )
                await send({"type": "http.response.body", "body": chunk.data, "more_body": True})
                said += chunk.tokens
            end = SUCCEEDED
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()
            self._settle(end, said)

    async def _gone(self, leaving: asyncio.Future[None], due: float) -> bool:
        """Waits until it is time; True when the caller has hung up by then."""
        pause = due - asyncio.get_running_loop().time()
        if pause > 0:
            await asyncio.wait({leaving}, timeout=pause)
        else:
            await asyncio.sleep(0)
        return leaving.done()


def _reached(mark: int, said: int, total: int) -> bool:
    """Whether the fault's place has come: before anything for 0, else once so many tokens (or all) are said."""
    return mark != NEVER and said >= min(mark, total)

"""Server-sent events on their way to a client: what the stream of a Run and that of a completion have in common."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from starlette.responses import Response

from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from services.edge.routes.presence import Presence

EVENT_STREAM = "text/event-stream"
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(Response):
    """Sends pieces of text as they come, until they end or the client leaves, whichever is first; then closes them.

    An empty piece is none. `close` gives up what is upstream of pieces of which none was ever asked for.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        metrics: Metrics,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(None, 200, HEADERS, EVENT_STREAM)
        self._pieces = pieces
        self._close = close
        self._open = metrics.gauge(names.HTTP_STREAMS)
        del self.headers["content-length"]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI side of it."""
        self._open.inc()
        try:
            async with Presence(scope, receive) as presence, aclosing(self._pieces) as pieces:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for piece in pieces:
                    if piece:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            if not presence.left:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._open.dec()
            if self._close is not None:
                await self._close()

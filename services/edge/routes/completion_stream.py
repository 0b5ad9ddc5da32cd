"""A streamed completion on its way to the client (SYN-8, OAI-1).

Laws of this file:
- frames are written as the pieces come, by the task that serves the request: none is kept back, none is collected,
  and what came together is written together;
- what has begun ends in one of two ways: with `[DONE]`, or with an honest error and without it;
- a client that leaves closes the feed, and with it everything upstream.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from services.edge import problems
from services.edge.app.authenticate import Authenticator, Caller
from services.edge.app.completions import Completions
from services.edge.domain.call_headers import headers_of
from services.edge.domain.calls import Receipt
from services.edge.domain.openai_answers import ChunkWriter, event
from services.edge.routes.calling import Pieces

STOPS = "this server has to stop; what came until now is all that there is, and may have been charged"


class Feed:
    """One stream as its frames. The key is looked at again every `check_s` seconds: a revoked one ends it (AUTH-1)."""

    def __init__(
        self,
        first: list[bytes] | Receipt,
        pieces: Pieces,
        writer: ChunkWriter,
        *,
        caller: Caller,
        authenticator: Authenticator,
        clock: Clock,
        check_s: float,
        ended: Callable[[Fault], dict[str, Any]],
        completions: Completions,
    ) -> None:
        self._completions = completions
        self._first = first
        self._pieces = pieces
        self._writer = writer
        self._caller = caller
        self._authenticator = authenticator
        self._clock = clock
        self._check_s = check_s
        self._ended = ended

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Frames until the end; `ended` spells a fault as the body of a problem."""
        with self._completions.serving():
            try:
                yield self._spelt(self._first)
                check_at = self._clock.monotonic() + self._check_s
                async for pieces in self._pieces:
                    yield self._spelt(pieces)
                    if self._clock.monotonic() >= check_at:
                        await self._check_key()
                        check_at = self._clock.monotonic() + self._check_s
            except Fault as fault:
                yield event(self._ended(fault))
            except asyncio.CancelledError:
                if not self._completions.over:
                    raise
                yield event(self._ended(Fault.of("stream_interrupted", STOPS)))

    async def close(self) -> None:
        """Give up what is upstream, also where no frame was ever asked for."""
        await self._pieces.aclose()

    async def _check_key(self) -> None:
        if not await self._authenticator.still(self._caller):
            raise Fault.of("unauthenticated", "the key was revoked or has expired")

    def _spelt(self, pieces: list[bytes] | Receipt) -> bytes:
        if isinstance(pieces, Receipt):
            told = headers_of(pieces)
            words = ", ".join(f"{name}: {value}" for name, value in told.items())
            return (f": {words}\n\n".encode() if words else b"") + self._writer.end(pieces)
        return b"".join(map(self._writer.frame, pieces))


def spelling(metrics: Metrics, request_id: str, call_id: str) -> Callable[[Fault], dict[str, Any]]:
    """How a fault within a stream is told: as a problem with OpenAI's envelope, and counted as one."""

    def ended(fault: Fault) -> dict[str, Any]:
        metrics.counter(names.HTTP_PROBLEMS, code=fault.code).inc()
        return problems.with_envelope({**problems.problem(fault, request_id), "call_id": call_id})

    return ended

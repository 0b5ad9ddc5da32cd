"""A limit on the time in which a provider must say something, moved on whenever it has."""

import asyncio
from types import TracebackType
from typing import Self

from libs.kernel.clock import Clock

ENDLESS = float("inf")
LOOK_S = 5.0
"""How often a limit that rests is looked at."""


class Watchdog:
    """`async with Watchdog(clock, 20.0) as dog:` raises TimeoutError where the block outlives its limit.

    `push` sets a new limit from now; while it rests (`rest`) the block may take its time. 0 s = no limit. Cancelling
    the task from outside is not taken for the limit.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._until = self._wakes = ENDLESS
        self._cancelling = 0
        self._watched: asyncio.Task[object] | None = None
        self._watch: asyncio.Task[None] | None = None
        self.barked = False
        self.push(seconds)

    def push(self, seconds: float) -> None:
        """So long from now."""
        self._until = self._clock.monotonic() + seconds if seconds > 0 else ENDLESS
        if self._watch is not None and self._until < self._wakes:  # it would wake too late
            self._watch.cancel()
            self._watch = asyncio.ensure_future(self._run())

    def rest(self) -> None:
        """No limit for the time being: somebody else is waited for."""
        self._until = ENDLESS

    async def __aenter__(self) -> Self:
        self._watched = asyncio.current_task()
        assert self._watched is not None  # only tasks await
        self._cancelling = self._watched.cancelling()
        self._watch = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._watch is not None
        assert self._watched is not None
        watched, self._watched = self._watched, None
        self._watch.cancel()
        self._watch = None  # its cancellation will hold its frame, and that this object: no circle for the collector
        if not self.barked or watched.uncancel() > self._cancelling:
            return
        if kind is None or issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error

    async def _run(self) -> None:
        while (left := self._until - (now := self._clock.monotonic())) > 0:
            self._wakes = now + min(left, LOOK_S)
            await self._clock.sleep(min(left, LOOK_S))
        self.barked = True
        assert self._watched is not None
        self._watched.cancel()

"""A limit on the time in which a provider must say something, moved on whenever it has.

All limits of a process are watched by one task, which sleeps until the nearest: a task for each call cost more than
what it watched. Where providers answer quickly there is a moment without any limit after nearly each call, so the task
does not go with the last of them but with its next look.
"""

import asyncio
from types import TracebackType
from typing import Self

from libs.kernel.clock import Clock

ENDLESS = float("inf")
LOOK_S = 5.0
"""How often limits that rest are looked at."""


class Watch:
    """The task of all watchdogs; it ends when it looks and finds none. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dogs: set[Watchdog] = set()
        self._wakes = ENDLESS
        self._task: asyncio.Task[None] | None = None

    def after(self, seconds: float) -> float:
        """So long from now, by the monotonic clock; 0 s = never."""
        return self._clock.monotonic() + seconds if seconds > 0 else ENDLESS

    def add(self, dog: "Watchdog") -> None:
        """Watch it from now on."""
        self._dogs.add(dog)
        self.mind(dog.until)

    def remove(self, dog: "Watchdog") -> None:
        """It is over."""
        self._dogs.discard(dog)

    def mind(self, until: float) -> None:
        """One of them has a new limit."""
        if self._task is not None and until < self._wakes:  # it would wake too late
            self._task.cancel()
            self._task = None
        if self._task is None:
            self._wakes = ENDLESS
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while self._dogs:
            now = self._clock.monotonic()
            for dog in [dog for dog in self._dogs if dog.until <= now]:
                dog.bark()
            left_s = min(min(dog.until for dog in self._dogs) - now, LOOK_S)
            self._wakes = now + left_s
            await self._clock.sleep(left_s)
        self._task = None


class Watchdog:
    """`async with Watchdog(watch, 20.0) as dog:` raises TimeoutError where the block outlives its limit.

    `push` sets a new limit from now; while it rests (`rest`) the block may take its time. 0 s = no limit. Cancelling
    the task from outside is not taken for the limit.
    """

    __slots__ = ("_cancelling", "_watch", "_watched", "barked", "until")

    def __init__(self, watch: Watch, seconds: float) -> None:
        self._watch = watch
        self._cancelling = 0
        self._watched: asyncio.Task[object] | None = None
        self.barked = False
        self.until = watch.after(seconds)

    def push(self, seconds: float) -> None:
        """So long from now."""
        self.until = self._watch.after(seconds)
        self._watch.mind(self.until)

    def rest(self) -> None:
        """No limit for the time being: somebody else is waited for."""
        self.until = ENDLESS

    def bark(self) -> None:
        """The time is over."""
        self.until, self.barked = ENDLESS, True
        assert self._watched is not None  # it is watched only within its block
        self._watched.cancel()

    async def __aenter__(self) -> Self:
        self._watched = asyncio.current_task()
        assert self._watched is not None  # only tasks await
        self._cancelling = self._watched.cancelling()
        self._watch.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.remove(self)
        assert self._watched is not None
        watched, self._watched = self._watched, None
        if not self.barked or watched.uncancel() > self._cancelling:
            return
        if kind is None or issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error

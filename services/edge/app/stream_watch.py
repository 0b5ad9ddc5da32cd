"""One look at the clock for all streams of this process: who was silent too long, and whose key no longer holds.

Laws of this file:
- a stream is told to say something once it was silent for `heartbeat_s` (SSE-1), counted from what it wrote last;
- a key is looked at every `check_s` seconds, once for all its streams; they end when it does not hold (AUTH-1);
- one task sleeps until the earliest of these moments; with no stream open there is none;
- a stream is told by its bell, and looks for itself what for.
"""

import asyncio
import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, takewhile

from libs.kernel.clock import Clock
from services.edge.app.authenticate import Authenticator, Caller


class Seat:
    """A stream that is watched."""

    __slots__ = ("bell", "revoked", "silent")

    def __init__(self, bell: asyncio.Event) -> None:
        self.bell = bell
        self.silent = False
        self.revoked = False


class _Key:
    """One key with its streams, and when it is looked at next."""

    __slots__ = ("caller", "due_s", "seats")

    def __init__(self, caller: Caller, due_s: float) -> None:
        self.caller = caller
        self.due_s = due_s
        self.seats: set[Seat] = set()


class StreamWatch:
    """The streams of this process. `draining` is true once this server wants to stop."""

    def __init__(self, authenticator: Authenticator, clock: Clock, *, heartbeat_s: float, check_s: float) -> None:
        self._authenticator = authenticator
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._check_s = check_s
        self._spoken: dict[Seat, float] = {}
        """When each is silent too long: earliest first, as all have the same time."""
        self._keys: dict[str, _Key] = {}
        self._checks: list[tuple[float, str]] = []
        """A heap of (when, digest of the key); an entry that its key no longer names is void."""
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_s = 0.0
        self._asking: set[asyncio.Task[None]] = set()
        self.draining = False

    @contextmanager
    def seat(self, caller: Caller, bell: asyncio.Event) -> Iterator[Seat]:
        """Watch a stream of that caller; it has just written."""
        seat = Seat(bell)
        key = self._keys.get(caller.digest)
        if key is None:
            key = self._keys[caller.digest] = _Key(caller, self._clock.monotonic() + self._check_s)
            heapq.heappush(self._checks, (key.due_s, caller.digest))
        key.seats.add(seat)
        self.wrote(seat)
        self._arm()
        try:
            yield seat
        finally:
            self._leave(seat, caller.digest, key)

    def wrote(self, seat: Seat) -> None:
        """The stream has written something just now."""
        seat.silent = False
        self._spoken.pop(seat, None)
        self._spoken[seat] = self._clock.monotonic() + self._heartbeat_s

    def drain(self) -> None:
        """Tell all streams that this server wants to stop."""
        self.draining = True
        for key in self._keys.values():
            for seat in key.seats:
                seat.bell.set()

    async def close(self) -> None:
        """Look no more."""
        tasks = [*self._asking, *([self._alarm] if self._alarm is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _leave(self, seat: Seat, digest: str, key: _Key) -> None:
        self._spoken.pop(seat, None)
        key.seats.discard(seat)
        if not key.seats and self._keys.get(digest) is key:
            del self._keys[digest]
        if not self._keys:
            self._checks.clear()
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

    def _arm(self) -> None:
        """Sleep until the earliest moment, unless that is what is done already."""
        earliest_s = min([due_s for due_s, _ in self._checks[:1]] + [*islice(self._spoken.values(), 1)], default=None)
        if earliest_s is None or (self._alarm is not None and self._alarm_s <= earliest_s):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = earliest_s
        self._alarm = asyncio.create_task(self._sleep(self._alarm_s), name="watch of streams")

    async def _sleep(self, until_s: float) -> None:
        await self._clock.sleep(max(0.0, until_s - self._clock.monotonic()))
        self._alarm = None
        self._look(self._clock.monotonic())
        self._arm()

    def _look(self, now_s: float) -> None:
        for seat, _ in tuple(takewhile(lambda spoken: spoken[1] <= now_s, self._spoken.items())):
            del self._spoken[seat]
            seat.silent = True
            seat.bell.set()
        while self._checks and self._checks[0][0] <= now_s:
            due_s, digest = heapq.heappop(self._checks)
            key = self._keys.get(digest)
            if key is not None and key.due_s == due_s:
                asking = asyncio.create_task(self._check(digest, key, now_s + self._check_s), name="key of streams")
                self._asking.add(asking)
                asking.add_done_callback(self._asking.discard)

    async def _check(self, digest: str, key: _Key, next_s: float) -> None:
        holds = True
        try:
            holds = await self._authenticator.still(key.caller)
        finally:
            if self._keys.get(digest) is key:
                self._checked(digest, key, next_s, holds=holds)

    def _checked(self, digest: str, key: _Key, next_s: float, *, holds: bool) -> None:
        if holds:
            key.due_s = next_s
            heapq.heappush(self._checks, (next_s, digest))
            self._arm()
        else:
            del self._keys[digest]
            for seat in key.seats:
                seat.revoked = True
                seat.bell.set()

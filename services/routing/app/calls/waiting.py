"""A call that waits: for a backoff, a quota, a cooldown. All of it is stall time, and it has an end (SYN-3, SYN-5)."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from services.routing.app.calls.call_desk import CallDesk
from services.routing.domain.calls import ends
from services.routing.domain.calls.stall_clock import NANOS, StallClock, until_stalled_s
from services.routing.domain.decision import Fate


class Waiting:
    """Of one call of a model; books on the call's own clock."""

    def __init__(self, desk: CallDesk, model: str, window_s: float, clock: StallClock) -> None:
        self._desk = desk
        self._model = model
        self._window_s = window_s
        self._clock = clock
        self._looked = False
        self._elsewhere: datetime | None = None
        """The last success of the scope in another process, as far as it was asked for."""

    async def caught_up(self, left_s: float) -> bool:
        """Once for a call that finds no place: whether slots and outcomes of calls that had ended were still to be
        told, and are now, so that another look may find one."""
        first, self._looked = not self._looked, True
        if not first or not await self._desk.afterwards.catch_up(left_s):
            return False
        self._desk.looking.forget()
        return True

    async def wait(self, seconds: float, fates: Sequence[Fate], holds: ends.Holds) -> Fault | None:
        """Until that time is over, or something is given back, or the verdict of stall has fallen: that one."""
        await self._sleep(min(seconds, self._until_stalled_s() or self._window_s))
        return await self.verdict(fates, holds)

    async def verdict(self, fates: Sequence[Fate], holds: ends.Holds) -> Fault | None:
        """The verdict of stall, once it has fallen. Tries that consume no attempt are stall time like any wait, so it
        falls after one of these too."""
        if self._until_stalled_s() > 0:
            return None
        with suppress(Fault):  # if nobody can say, what this process knows decides
            since = self._desk.now() - timedelta(seconds=self._window_s)
            self._elsewhere = await self._desk.store.last_success(self._model, since)
        if self._until_stalled_s() > 0:
            return None
        return ends.stalled(self._stall_ns() / NANOS, self._window_s, self._last(), fates, holds)

    async def _sleep(self, seconds: float) -> None:
        self._clock.begin_wait(self._desk.now_ns())
        sleeping = asyncio.ensure_future(self._desk.world.clock.sleep(seconds))
        hearing = asyncio.ensure_future(self._desk.memory.room.wait())
        try:
            await asyncio.wait((sleeping, hearing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            hearing.cancel()
            self._clock.end_wait(self._desk.now_ns())

    def _until_stalled_s(self) -> float:
        return until_stalled_s(self._stall_ns(), self._window_s, self._desk.now(), self._last())

    def _stall_ns(self) -> int:
        return self._clock.stall_ns(self._desk.now_ns())

    def _last(self) -> datetime | None:
        known = self._desk.memory.successes.get(self._model)
        return max((item for item in (known, self._elsewhere) if item is not None), default=None)

"""What is done after calls, put together: slots, outcomes and records of a moment go in one go (SYN-7).

Nobody waits for it, so it may wait a little for more of its sort: what is told together shares statements and commits.
Whoever waits for a slot does not wait for that: then it goes at once. Nor is anybody turned away for a slot that is
held by nothing but this: who finds a gate shut has it done first (`catch_up`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from libs.kernel.clock import Clock
from libs.kernel.deadlines import deadline_at
from libs.telemetry.spans import carried, here
from services.routing.app.desk import Errands

log = logging.getLogger(__name__)

CATCH_UP_S = 0.5
Work = Callable[[], Awaitable[Any]]
"""Begins something; what it gives is under way, or still to be awaited."""


class Afterwards:
    """Begins what it is given as errands, a window at a time. `hurried` tells whether somebody waits for a slot."""

    def __init__(self, errands: Errands, clock: Clock, window_s: float, hurried: Callable[[], bool]) -> None:
        self._errands = errands
        self._clock = clock
        self._window_s = window_s
        self._hurried = hurried
        self._gathered: list[tuple[Work, str]] = []
        self._under_way: set[asyncio.Future[Any]] = set()

    def begin(self, work: Work) -> None:
        """Do it soon, whatever becomes of the caller."""
        if self._window_s <= 0 or self._hurried():
            self._do(work)
            return
        if not self._gathered:
            self._errands.begin(self._later())
        self._gathered.append((work, here()))

    async def catch_up(self, most_s: float = CATCH_UP_S) -> bool:
        """Do what is gathered, and return when it and what had begun is done, or has taken too long; False where there
        was nothing to do."""
        self._do_gathered()
        begun = set(self._under_way)
        if begun:
            await asyncio.wait(begun, timeout=min(most_s, CATCH_UP_S))
        return bool(begun)

    async def _later(self) -> None:
        try:
            await self._clock.sleep(self._window_s)
        finally:
            self._do_gathered()

    def _do_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        for work, traceparent in gathered:
            with carried(traceparent):
                self._do(work)

    def _do(self, work: Work) -> None:
        try:
            with deadline_at(None):
                begun = self._errands.begin(work())
            self._under_way.add(begun)
            begun.add_done_callback(self._under_way.discard)
        except Exception:  # a bug in one of them is no reason to leave the others undone
            log.exception("what follows a call could not begin")

"""Where the time of a call goes, and when its waiting is over (SYN-3, SYN-5). Pure: the time comes in as an argument.

Laws of this file:
- at every moment a call is in one phase, so wall = productive + stall + overhead, to the nanosecond;
- the time of a try is booked when it has ended: a real try is productive, one that consumed no attempt (429) is stall;
- a call stalls only if it has itself waited for the whole window *and* nothing in its scope has succeeded within it.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

NANOS = 1_000_000_000


class Times(Struct, frozen=True):
    """Nanoseconds. `wall` is the sum of the others."""

    wall_ns: int = 0
    productive_ns: int = 0
    stall_ns: int = 0
    overhead_ns: int = 0


NO_TIMES = Times()


class _Phase(StrEnum):
    OVERHEAD = "overhead"
    TRYING = "trying"
    WAITING = "waiting"


def nanos(monotonic_s: float) -> int:
    """A monotonic time in whole nanoseconds."""
    return round(monotonic_s * NANOS)


class StallClock:
    """The account of one call. Times given never go back; one that does counts as standing still."""

    __slots__ = ("_began", "_overhead", "_phase", "_productive", "_since", "_stall")

    def __init__(self, now_ns: int) -> None:
        self._began = self._since = now_ns
        self._phase = _Phase.OVERHEAD
        self._productive = self._stall = self._overhead = 0

    def begin_try(self, now_ns: int) -> None:
        """A provider is called from now on."""
        self._settle(now_ns)
        self._phase = _Phase.TRYING

    def end_try(self, now_ns: int, consumed: bool) -> None:
        """It has answered, or was given up. `consumed`: it counts as an attempt."""
        if self._phase is _Phase.TRYING:
            self._book(now_ns, productive=consumed)

    def begin_wait(self, now_ns: int) -> None:
        """Backoff, a Retry-After, a quota, a cooldown: nothing is tried from now on."""
        self._settle(now_ns)
        self._phase = _Phase.WAITING

    def end_wait(self, now_ns: int) -> None:
        """Waited enough."""
        if self._phase is _Phase.WAITING:
            self._book(now_ns, productive=False)

    def stall_ns(self, now_ns: int) -> int:
        """Stall time up to now, a wait under way included."""
        return self._stall + (max(0, now_ns - self._since) if self._phase is _Phase.WAITING else 0)

    def times(self, now_ns: int) -> Times:
        """The account up to now. A try that was never ended is booked as productive: it was a real one."""
        self._settle(now_ns)
        return Times(self._since - self._began, self._productive, self._stall, self._overhead)

    def _settle(self, now_ns: int) -> None:
        if self._phase is _Phase.OVERHEAD:
            self._overhead += self._passed(now_ns)
        else:
            self._book(now_ns, productive=self._phase is _Phase.TRYING)

    def _book(self, now_ns: int, productive: bool) -> None:
        passed = self._passed(now_ns)
        if productive:
            self._productive += passed
        else:
            self._stall += passed
        self._phase = _Phase.OVERHEAD

    def _passed(self, now_ns: int) -> int:
        passed = max(0, now_ns - self._since)
        self._since += passed
        return passed


def until_stalled_s(stall_ns: int, window_s: float, now: datetime, last_success: datetime | None) -> float:
    """SYN-5: how much longer a call must only wait, and nothing succeed, until it is stalled; 0 = it is.

    `last_success` is that of anybody in the scope; None = never, which is infinitely long ago.
    """
    own = max(0, nanos(window_s) - stall_ns) / NANOS
    if last_success is None:
        return own
    return max(own, window_s - (now - last_success).total_seconds())

"""The last count of what weighs in the windows, lent to looks that come soon after.

Every lease of the last minute is looked at to count them, which takes a busy minute's 44,000 some fifty milliseconds,
and routing looks twenty times a second. Few leases are counted each time. Only a reservation decides, and it does not
look here.
"""

from collections.abc import Sequence
from dataclasses import replace

from services.capacity.domain.counts import Count

FEW = 5_000
COUNTED_IN_A_SECOND = 50_000
"""So many leases are looked at within a second at most, a twentieth of what a server can."""
NEVER = float("-inf")


class Windows:
    """`lent` gives the last count for as long as it may serve, without live leases: those are counted each time."""

    def __init__(self) -> None:
        self._counts: tuple[Count, ...] = ()
        self._until = NEVER

    def lent(self, now_s: float) -> tuple[Count, ...] | None:
        """None where they are to be counted anew."""
        return self._counts if now_s < self._until else None

    def keep(self, counts: Sequence[Count], now_s: float) -> None:
        """They were counted, by then. Where there are few of them, nothing is lent."""
        leases = sum(count.requests for count in counts)
        many = leases >= FEW
        self._counts = tuple(replace(count, live=0) for count in counts) if many else ()
        self._until = now_s + leases / COUNTED_IN_A_SECOND if many else NEVER

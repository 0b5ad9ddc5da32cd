"""Whom a selector prefers among the candidates that survive (SYN-9). Pure.

A selector gives ranks by Supply; `domain.selection` orders by rank first and by the policy second. It drops nobody and
brings nobody back. Without ranks the policy alone decides, which is `health_aware`.
"""

from collections.abc import Iterable, Mapping

from services.routing.domain.calls.sync_settings import Selector

Ranks = Mapping[str, int]
NO_RANKS: Ranks = {}


class Rota:
    """Whose turn it is: the Supply that was chosen longest ago. Among any survivors each gets its turn."""

    __slots__ = ("_count", "_last")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._count = 0

    def ranks(self, supplies: Iterable[str]) -> Ranks:
        """0 for one that was never chosen, then in the order in which they were."""
        return {name: self._last.get(name, 0) for name in supplies}

    def chosen(self, supply: str) -> None:
        """It has had its turn."""
        self._count += 1
        self._last[supply] = self._count


def ranks_of(selector: Selector, supplies: Iterable[str], rota: Rota, in_flight: Mapping[str, int]) -> Ranks:
    """By Supply, smaller first."""
    if selector is Selector.ROUND_ROBIN:
        return rota.ranks(supplies)
    if selector is Selector.LEAST_INFLIGHT:
        return {name: in_flight.get(name, 0) for name in supplies}
    return NO_RANKS

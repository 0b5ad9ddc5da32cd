"""Sees every Hold at the moment at which the ledger takes it, and at which it ends."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from services.cost_quote.domain.budgets import HoldState, Moved


@dataclass(slots=True)
class Held:
    """From when to when a Hold was held, in the loop's seconds; `until` None = it still is."""

    since: float
    until: float | None = None

    def at(self, moment: float) -> bool:
        """Whether it was held then."""
        return self.since <= moment and (self.until is None or moment <= self.until)


class MoneyWitness:
    """Knows for itself which Hold was held when."""

    def __init__(self, loop: Any, seen: Counter[str]) -> None:
        self._loop = loop
        self._seen = seen
        self.holds: dict[str, Held] = {}

    def moved(self, answer: Any) -> None:
        """The ledger has answered."""
        if not isinstance(answer, Moved):
            return
        hold, now = answer.hold, self._loop.time()
        if hold.state is HoldState.HELD:
            self._seen["holds taken"] += hold.id not in self.holds
            self.holds.setdefault(hold.id, Held(now))
        elif hold.id in self.holds and self.holds[hold.id].until is None:
            self.holds[hold.id].until = now

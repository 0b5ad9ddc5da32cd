"""What a price may depend on: the facts of one request, and whether a condition on them holds.

Laws of this file:
- a fact that the request leaves to the provider (`ratio: adaptive`, `duration_s: -1`) is undecided: a condition on it
  neither holds nor fails, and whoever asks takes the dearest of what may be;
- a fact that is not there is simply not there: no condition on its value holds.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from services.cost_quote.domain.rules import Condition

MOST_DIGITS = 18
"""Before the point, of a figure that is taken for one: nobody orders more, and the arithmetic stays exact."""
LEFT_TO_THE_PROVIDER = frozenset({"auto", "adaptive"})
ABSENT = object()


class Asked:
    """One request with its figures, each read once however many rules price it. `at` is when it is submitted, aware
    and in UTC; None = not known."""

    __slots__ = ("_decimals", "at", "quantities", "request")

    def __init__(self, request: Mapping[str, Any], at: datetime | None = None) -> None:
        self.request = request
        self.at = at
        self._decimals: dict[str, Decimal | None] = {}
        self.quantities: dict[Any, Any] = {}
        """What `pricing` has worked out before."""

    def decimal(self, name: str) -> Decimal | None:
        """A fact as a decimal; None where it is absent or no number."""
        if name not in self._decimals:
            self._decimals[name] = decimal_of(self.fact(name))
        return self._decimals[name]

    def fact(self, name: str) -> Any:
        """A fact by its name; a name with points leads into objects. None where it is absent."""
        found = self.request.get(name, ABSENT)
        if found is not ABSENT:
            return found
        if "." not in name:
            return None
        value: Any = self.request
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def undecided(self, name: str) -> bool:
        """Whether the request leaves it to the provider."""
        value = self.fact(name)
        if isinstance(value, str):
            return value.lower() in LEFT_TO_THE_PROVIDER
        return value == -1 and not isinstance(value, bool)

    def counted(self, name: str) -> Decimal | None:
        """How many things a list holds, or the number itself; None where it is absent or neither."""
        value = self.fact(name)
        if isinstance(value, (list, tuple)):
            return Decimal(len(value))
        return self.decimal(name)

    def given(self, name: str) -> bool:
        """Whether it is there and not empty."""
        return self.fact(name) not in (None, "", [], (), {})

    def holds(self, condition: Condition) -> bool | None:
        """Whether it holds; None where nobody can tell before the provider has decided."""
        verdict: bool | None = True
        if condition.hours:
            verdict = None if self.at is None else any(window.holds(self.at) for window in condition.hours)
        for name, wanted in condition.when.items():
            if verdict is False:
                break
            found = self._matches(name, wanted)
            verdict = found if found is False or verdict is True else verdict
        return verdict

    def _matches(self, name: str, wanted: Any) -> bool | None:
        if isinstance(wanted, Mapping):
            return self._within(name, wanted)
        if self.undecided(name) and not _leaves_it(wanted):
            return None
        if isinstance(wanted, (list, tuple)):
            return any(self._equals(name, item) for item in wanted)
        return self._equals(name, wanted)

    def _equals(self, name: str, wanted: Any) -> bool:
        if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
            return self.decimal(name) == decimal_of(wanted)
        value = self.fact(name)
        if isinstance(wanted, str) and isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.decimal(name) == decimal_of(wanted)
        return bool(value == wanted)

    def _within(self, name: str, wanted: Mapping[str, Any]) -> bool | None:
        """`given`, `from`, `above`, `to`, `below`, `not`: all that are named must hold."""
        if "given" in wanted and self.given(name) is not bool(wanted["given"]):
            return False
        if "not" in wanted and self._equals(name, wanted["not"]):
            return False
        bounds = [(key, decimal_of(wanted[key])) for key in ("from", "above", "to", "below") if key in wanted]
        if not bounds:
            return True
        if self.undecided(name):
            return None
        number = self.counted(name)
        return number is not None and all(bound is not None and _kept(key, number, bound) for key, bound in bounds)


def _kept(key: str, number: Decimal, bound: Decimal) -> bool:
    match key:
        case "from":
            return number >= bound
        case "above":
            return number > bound
        case "to":
            return number <= bound
        case _:
            return number < bound


def _leaves_it(wanted: Any) -> bool:
    """Whether the condition asks for the very word that leaves the choice to the provider."""
    words = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    return any(isinstance(word, str) and word.lower() in LEFT_TO_THE_PROVIDER for word in words)


def count_of(value: Any) -> int:
    """0 for what is no number of things."""
    return max(0, int(decimal_of(value) or 0))


def decimal_of(value: Any) -> Decimal | None:
    """None for what is no number, endless, or longer than `MOST_DIGITS`."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = Decimal(repr(value) if isinstance(value, float) else str(value))
    except (InvalidOperation, ValueError):
        return None
    return found if found.is_finite() and found.adjusted() < MOST_DIGITS else None

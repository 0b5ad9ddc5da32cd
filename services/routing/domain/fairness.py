"""Whose turn it is: three classes of urgency as weights 4 : 2 : 1, never as levels (ATT-9).

Start-time fair queueing over classes. Each class has a virtual time that rises by 1/weight with every Task taken from
it; the class with the smallest virtual time goes next. A class that had nothing to do earns no credit: it comes back at
the virtual time of the last turn.

The bound: while a class has something due, between two of its turns any other class has at most
ceil(its weight / this class's weight) + 1 turns. So a `low` Task at the head of its class is passed by at most
5 `high` and 3 `normal` ones per claiming process, however many of those arrive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

WEIGHTS: Mapping[str, int] = {"high": 4, "normal": 2, "low": 1}

Item = TypeVar("Item")


def passed_at_most(weight_of_other: int, weight: int) -> int:
    """How often a class may go between two turns of one that has something due."""
    return -(-weight_of_other // weight) + 1


@dataclass(frozen=True, slots=True)
class Turns:
    """The virtual times. A value: `take` gives the next one."""

    times: Mapping[str, Fraction] = field(default_factory=dict)
    now: Fraction = Fraction(0)
    """Virtual time of the last turn: nobody who was away comes back with an earlier one."""

    def take(self, heads: Mapping[str, Sequence[Item]], count: int) -> tuple[tuple[tuple[str, Item], ...], "Turns"]:
        """Up to `count` of `heads` (by class, each in its own order) as (class, item), and the turns after them."""
        times = {name: max(self.times.get(name, self.now), self.now) for name in WEIGHTS}
        places = {name: 0 for name in WEIGHTS if heads.get(name)}
        now = self.now
        taken: list[tuple[str, Item]] = []
        while places and len(taken) < count:
            name = min(places, key=lambda item: (times[item], -WEIGHTS[item]))
            taken.append((name, heads[name][places[name]]))
            now = times[name]
            times[name] += Fraction(1, WEIGHTS[name])
            places[name] += 1
            if places[name] == len(heads[name]):
                del places[name]
        # Only differences matter: counted from `now`, the numbers stay small.
        return tuple(taken), Turns({name: time - now for name, time in times.items()})

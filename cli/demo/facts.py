"""Facts that the demonstration claims, each with what was seen. One false fact and the demonstration failed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


def words(seen: object) -> str:
    """What was seen, for people: no brackets, no quotes, `none` for nothing."""
    if isinstance(seen, Mapping):
        return ", ".join(f"{name} {words(value)}" for name, value in seen.items()) or "none"
    if isinstance(seen, (list, tuple, set)):
        return ", ".join(words(item) for item in seen) or "none"
    if isinstance(seen, bool):
        return "yes" if seen else "no"
    return str(seen)


@dataclass(frozen=True, slots=True)
class Fact:
    """A claim, whether it held, and what was seen."""

    claim: str
    held: bool
    seen: str


@dataclass(slots=True)
class Facts:
    """All of them, in the order of the story."""

    facts: list[Fact] = field(default_factory=list)

    def check(self, claim: str, held: bool, seen: object = "", expected: str = "") -> bool:
        """Note a fact; answers whether it held. `expected` says what would have been right."""
        told = f"seen {words(seen)}, expected {expected}" if expected and not held else words(seen)
        self.facts.append(Fact(claim, bool(held), told))
        return bool(held)

    def equal(self, claim: str, found: object, expected: object) -> bool:
        """Note that two things are equal."""
        seen = words(found) if found == expected else f"seen {words(found)}, expected {words(expected)}"
        return self.check(claim, found == expected, seen)

    @property
    def broken(self) -> list[Fact]:
        """Those that did not hold."""
        return [fact for fact in self.facts if not fact.held]

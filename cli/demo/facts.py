"""Facts that the demonstration claims, each with what was seen. One false fact and the demonstration failed."""

from dataclasses import dataclass, field


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

    def check(self, claim: str, held: bool, seen: object = "") -> bool:
        """Note a fact; answers whether it held."""
        self.facts.append(Fact(claim, bool(held), str(seen)))
        return bool(held)

    def equal(self, claim: str, found: object, expected: object) -> bool:
        """Note that two things are equal."""
        seen = str(found) if found == expected else f"{found}, expected {expected}"
        return self.check(claim, found == expected, seen)

    @property
    def broken(self) -> list[Fact]:
        """Those that did not hold."""
        return [fact for fact in self.facts if not fact.held]

"""The nouns of the ledger: amounts, a budget in its tree, a Hold, an entry. Values alone; `ledger` decides.

Money is counted in whole nanos of the budget's currency, so that every sum is exact.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

COUNTED = ("cost", "attempts", "review_minutes")
"""The dimensions that are summed; the deadline is the fourth, and a time."""


class ValueClass(StrEnum):
    """What a limit does to the work under it (COST-10)."""

    HERO = "hero"
    NORMAL = "normal"
    BACKGROUND = "background"


class HoldState(StrEnum):
    """Where a Hold stands. Settled and released are ends."""

    HELD = "held"
    SETTLED = "settled"
    RELEASED = "released"


class EntryKind(StrEnum):
    """What moved."""

    HOLD = "hold"
    SETTLE = "settle"
    RELEASE = "release"
    LIMIT = "limit"
    CORRECTION = "correction"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Money in nanos, attempts, minutes of reviewers. In a limit 0 = not limited."""

    cost: int = 0
    attempts: int = 0
    review_minutes: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.cost + other.cost, self.attempts + other.attempts, self.review_minutes + other.review_minutes
        )

    def __neg__(self) -> "Amounts":
        return Amounts(-self.cost, -self.attempts, -self.review_minutes)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            self.cost - other.cost, self.attempts - other.attempts, self.review_minutes - other.review_minutes
        )

    def within(self, other: "Amounts") -> bool:
        """Whether no dimension is above that of another."""
        return (
            self.cost <= other.cost and self.attempts <= other.attempts and self.review_minutes <= other.review_minutes
        )

    def of(self, dimension: str) -> int:
        """The amount in one of `COUNTED`."""
        return int(getattr(self, dimension))

    def with_those_of(self, other: "Amounts", named: Collection[str]) -> "Amounts":
        """The same, with the named dimensions of another."""
        return replace(self, **{name: other.of(name) for name in named})

    def above_zero(self) -> "Amounts":
        """The same, with nothing below zero."""
        return Amounts(max(0, self.cost), max(0, self.attempts), max(0, self.review_minutes))


NOTHING = Amounts()


@dataclass(frozen=True, slots=True)
class Asked:
    """Amounts as a caller said them: money in a currency of the caller's choice (empty = none).

    `worth` holds that money in nanos of every currency that it can be converted into; it depends on the rate table of
    the day and is no part of what was asked.
    """

    cost: int = 0
    currency: str = ""
    attempts: int = 0
    review_minutes: int = 0
    worth: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def words(self) -> "Asked":
        """What was said, without what it was worth that day."""
        return Asked(self.cost, self.currency, self.attempts, self.review_minutes)

    def with_worth(self, worth: Mapping[str, int]) -> "Asked":
        """The same in these currencies; without money, in none."""
        return Asked(self.cost, self.currency, self.attempts, self.review_minutes, worth if self.currency else {})

    def amounts_in(self, currency: str) -> Amounts | None:
        """In a budget's currency; None where no rate leads there."""
        cost = self.worth.get(currency) if self.currency else 0
        return None if cost is None else Amounts(cost, self.attempts, self.review_minutes)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A budget as its maker declares it."""

    id: str
    level: str
    parent_id: str = ""
    tenant: str = ""
    value_class: ValueClass = ValueClass.NORMAL
    currency: str = ""
    """Empty = the parent's."""
    hard: Amounts = NOTHING
    soft: Amounts = NOTHING
    hard_currency: str = ""
    """Of the money in `hard`, where it names any."""
    soft_currency: str = ""
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """One level of a tree. `number` rises in the order of making, so a parent's is below its children's."""

    id: str
    parent_id: str
    path: tuple[str, ...]
    """From the root down to itself."""
    level: str
    tenant: str
    value_class: ValueClass
    currency: str
    declaration: str
    """Digest of what its maker declared."""
    hard: Amounts
    soft: Amounts
    created_at: datetime
    spent: Amounts = NOTHING
    held: Amounts = NOTHING
    deadline_at: datetime | None = None
    soft_limit_at: datetime | None = None
    soft_limit_by: str = ""
    """What reached the soft limit: `hold:ID` or `settle:ID`. Its repeat is told so again."""
    refused_at: datetime | None = None
    revision: int = 0
    number: int = 0

    @property
    def used(self) -> Amounts:
        """Spent and held together: what limits are compared with."""
        return self.spent + self.held


@dataclass(frozen=True, slots=True)
class Hold:
    """Amounts reserved at every level of a branch. `budget_id` is empty where an unknown Hold was released."""

    id: str
    budget_id: str
    currency: str
    asked: Asked
    amounts: Amounts
    state: HoldState
    subject: str
    created_at: datetime
    settled: Amounts | None = None
    settled_asked: Asked | None = None
    finished_at: datetime | None = None

    @property
    def beyond(self) -> Amounts:
        """What was booked beyond what had been held."""
        if self.settled is None or self.settled.within(self.amounts):
            return NOTHING
        return (self.settled - self.amounts).above_zero()


@dataclass(frozen=True, slots=True)
class Entry:
    """One movement of one budget; never changed. `sequence` counts from 1 without a gap."""

    budget_id: str
    sequence: int
    kind: EntryKind
    hold_id: str
    held: Amounts
    spent: Amounts
    reason: str
    created_at: datetime
    request_id: str = ""
    limits: "Limits | None" = None
    """The limits after it, where they were changed."""

    @property
    def beyond(self) -> Amounts:
        """What it booked that no Hold had reserved: only so much may a budget be over its hard limit."""
        booked = self.kind in (EntryKind.SETTLE, EntryKind.CORRECTION)
        return (self.held + self.spent).above_zero() if booked else NOTHING


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything that a person may change of a budget."""

    hard: Amounts
    soft: Amounts
    deadline_at: datetime | None


class HoldAsk(Struct, frozen=True):
    """Asks for a reservation."""

    hold_id: str
    budget_id: str
    asked: Asked
    subject: str


class EnlargeAsk(Struct, frozen=True):
    """Asks that a Hold hold at least so much money: what it lacks is reserved beside it."""

    hold_id: str
    asked: Asked
    reason: str = ""


class SettleAsk(Struct, frozen=True):
    """Books what it cost. `correct`: replaces what was booked before."""

    hold_id: str
    asked: Asked
    reason: str = ""
    correct: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseAsk:
    """Gives a reservation back."""

    hold_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChangeAsk:
    """Changes limits: None = as they are, and of a limit only the dimensions that are named.

    The currencies are those of the money in the limits, where they name any.
    """

    budget_id: str
    reason: str
    hard: Amounts | None = None
    soft: Amounts | None = None
    hard_currency: str = ""
    soft_currency: str = ""
    deadline_at: datetime | None = None
    request_id: str = ""
    hard_named: tuple[str, ...] = COUNTED
    soft_named: tuple[str, ...] = COUNTED
    only_raise: bool = False
    """A limit that is higher, or is none, stays."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a Hold was not taken: the first level from the top, and its first dimension, that has no room."""

    budget: Budget
    dimension: str
    asked: Amounts


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a Hold. `told` are budgets that reached their soft limit by it, `soft` those at theirs."""

    hold: Hold
    told: tuple[str, ...] = ()
    soft: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A Hold that was not taken, and the budgets of its branch that are at their soft limit."""

    refusal: Refusal
    soft: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A budget whose figures contradict its entries or its Holds: a bug, or a hand in the database."""

    budget_id: str
    what: str

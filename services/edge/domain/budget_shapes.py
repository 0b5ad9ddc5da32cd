"""The public JSON shapes of budgets and their ledger."""

from datetime import datetime

from msgspec import Struct

from services.edge.domain.shapes import Amount


class BudgetAmounts(Struct, frozen=True):
    """What is spent, held or moved: money, attempts at providers, minutes of reviewers."""

    cost: Amount
    attempts: int
    review_minutes: int


class BudgetLimits(Struct, frozen=True):
    """Limits by dimension; null = not limited."""

    cost: Amount | None
    attempts: int | None
    review_minutes: int | None


class Budget(Struct, frozen=True):
    """One level of a tree. `spent` is booked, `held` reserved; together they never pass `hard` by a Hold."""

    id: str
    parent: str | None
    level: str
    tenant: str | None
    value_class: str
    currency: str
    hard: BudgetLimits
    soft: BudgetLimits
    spent: BudgetAmounts
    held: BudgetAmounts
    deadline_at: datetime | None
    soft_limit_at: datetime | None
    refused_at: datetime | None
    created_at: datetime | None
    revision: int


class BudgetList(Struct, frozen=True):
    """Budgets, parents before their children."""

    budgets: list[Budget]
    next_page_token: str


class BudgetEntry(Struct, frozen=True):
    """One movement of a budget; never changed. `hard`, `soft` and `deadline_at`: the limits after they were changed."""

    sequence: int
    kind: str
    hold: str | None
    held: BudgetAmounts
    spent: BudgetAmounts
    reason: str
    hard: BudgetLimits | None
    soft: BudgetLimits | None
    deadline_at: datetime | None
    created_at: datetime | None


class BudgetEntryList(Struct, frozen=True):
    """Movements, oldest first; ask for those after the last sequence for more."""

    entries: list[BudgetEntry]


class LedgerMismatch(Struct, frozen=True):
    """A budget whose figures contradict its entries or its Holds."""

    budget: str
    message: str


class LedgerCheck(Struct, frozen=True):
    """The verdict on the whole ledger; no mismatches = it is sound."""

    mismatches: list[LedgerMismatch]

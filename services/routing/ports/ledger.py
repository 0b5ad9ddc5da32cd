"""What routing needs of the ledger of budgets. Every call may raise `Fault`; none raises anything else."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from libs.kernel.money import Money


@dataclass(frozen=True, slots=True)
class NoMoney:
    """Why a Hold was not taken: which budget, of which level, in which dimension, in one sentence."""

    budget: str
    level: str
    dimension: str
    message: str


@dataclass(frozen=True, slots=True)
class OpenHold:
    """A Hold that is still held."""

    id: str
    taken_at: datetime
    currency: str
    """Of its budget."""


class Ledger(Protocol):
    """Budgets, Holds, settlements: see `BudgetService`."""

    async def declare(
        self, budget: str, tenant: str, currency: str, limit: Money | None, reason: str, changed_at: int = 0
    ) -> Money | None:
        """A tenant's root budget with that hard limit of money: made, or changed to it. A limit below what is spent and
        held becomes just that, which is answered. None: made without one, and one that is there stays as it is.

        A budget is changed to a limit once: what a person has made of it since stands, and None is answered, unless the
        catalogue has come to that limit anew, at revision `changed_at`."""
        ...

    async def lower(self, budget: str, limit: Money, stands: Money, reason: str) -> Money | None:
        """Bring a limit that still `stands` as near to that one as what is spent and held admits: how near; None where
        another one stands by now, which is somebody else's word."""
        ...

    async def hold(self, hold: str, budget: str, cost: Money, attempts: int, subject: str) -> NoMoney | None:
        """None = it is held. Faults: `already_exists` where an earlier try holds another amount under that id,
        `conflict` where that ended, `not_found` where there is no such budget."""
        ...

    async def cover(self, hold: str, cost: Money, reason: str) -> NoMoney | None:
        """None = the Hold holds at least that much, as it did before or with what was added under the same budget.
        Fault `conflict` where it has ended, `not_found` where there is none."""
        ...

    async def limited(self, budget: str) -> bool:
        """Whether a hard limit or a deadline stands on that very budget. Fault `not_found` where there is none."""
        ...

    def settle(self, hold: str, cost: Money, attempts: int, reason: str) -> Awaitable[None]:
        """Book what it cost, in the place of what was booked before. An unknown Hold is no fault: nothing was sent."""
        ...

    async def release(self, hold: str, reason: str) -> None:
        """Give it back."""
        ...

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """By id, those that begin so and come after `after`."""
        ...

    async def mismatches(self) -> Sequence[tuple[str, str]]:
        """(budget, what is wrong) of each that does not add up."""
        ...

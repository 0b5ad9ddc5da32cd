"""What cost_quote needs of its stores. One suite each, in tests/contract/cost_quote, proves every backend."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from services.cost_quote.domain.budgets import (
    Budget,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    Entry,
    Hold,
    HoldAsk,
    Mismatch,
    Moved,
    Refused,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.domain.quoting import PriceBook


class PriceBooks(Protocol):
    """Every price book that was ever told, by catalogue revision; none is changed after it was told."""

    async def current(self) -> PriceBook:
        """The book of the highest revision; an empty book of revision 0 before any was told."""
        ...

    async def add(self, revision: int, currency: str, fx: Mapping[str, str], specs: list[Mapping[str, Any]]) -> int:
        """Keep a book unless that revision or a later one is known; answers the highest revision known.

        Specs are declarations as in the catalogue file and have been parsed before. Adding one revision twice, also
        from two processes at once, keeps the first.
        """
        ...

    async def at(self, revision: int) -> PriceBook | None:
        """The book of that revision as it was told, for ever; None where none was told."""
        ...

    async def last_with(self, rule: str, version: int) -> PriceBook | None:
        """The book of the highest revision that has that version of that rule; None where none ever had it."""
        ...

    async def specs(self) -> tuple[int, str, list[Mapping[str, Any]]]:
        """(revision, currency, declarations in the order of their ids) of the current book."""
        ...


class Budgets(Protocol):
    """The tree of budgets and its ledger, under one clock, the store's own.

    Every method is atomic and answers as `domain.ledger` and `domain.limits` do, with their faults; Fault
    `governance_backend_down` where the store is away: then nothing is held and nothing runs (COST-11). A backend may
    gather concurrent calls, as long as each is decided as if alone, in some order.
    """

    async def create(self, declaration: Declaration) -> Budget:
        """Make it, or find it as it was declared before."""
        ...

    async def change(self, ask: ChangeAsk) -> Budget:
        """Change limits; a `request_id` that was used for this budget changes nothing again.

        Fault `conflict` where it changed to other limits.
        """
        ...

    async def hold(self, ask: HoldAsk) -> Moved | Refused:
        """Reserve at every level or at none."""
        ...

    async def enlarge(self, ask: EnlargeAsk) -> Moved | Refused:
        """Let a Hold hold at least that much money, at every level or at none. Fault `not_found` if unknown."""
        ...

    async def settle(self, ask: SettleAsk) -> Moved:
        """Book what it cost and free the rest. Fault `not_found` for an unknown Hold."""
        ...

    async def release(self, ask: ReleaseAsk) -> Hold:
        """Give back; an unknown Hold is refused from then on, and has no budget in the answer."""
        ...

    async def get(self, budget_id: str) -> Budget | None:
        """One budget."""
        ...

    async def find(self, tenant: str, root_id: str, after: int, most: int) -> Sequence[Budget]:
        """By `number`, those above `after`, so parents come before children; empty texts = any tenant, any root."""
        ...

    async def entries(self, budget_id: str, after: int, most: int) -> Sequence[Entry]:
        """By sequence, those above `after`."""
        ...

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[Hold]:
        """By id, those that are held, whose id begins with `prefix` and comes after `after`."""
        ...

    async def mismatches(self, *, whole: bool = False) -> Sequence[Mismatch]:
        """What contradicts `domain.checking` at one moment, by budget; the same again until it is mended.

        A look may take as proven what an earlier one proved of entries and of Holds that have ended, and read what came
        since; of budgets, limits and open Holds it reads all. `whole`: everything is read, and what is found wrong
        counts as unproven from then on.
        """
        ...

    async def reread(self, age: timedelta) -> Sequence[Mismatch] | None:
        """Look, and read one budget from its first entry: that which was not for longest, and longer than `age`.

        None where there is none; nothing was looked at.
        """
        ...

    async def close(self) -> None:
        """Answer who waits, let go of connections."""
        ...

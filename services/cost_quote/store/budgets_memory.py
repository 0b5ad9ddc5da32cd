"""Budgets in memory. Every method runs without an await between its first read and its last write."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from libs.kernel.clock import Clock
from services.cost_quote.domain import checking, ledger, limits
from services.cost_quote.domain.budgets import (
    Budget,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    Entry,
    Hold,
    HoldAsk,
    HoldState,
    Mismatch,
    Moved,
    Refused,
    ReleaseAsk,
    SettleAsk,
)


class MemoryBudgets:
    """Implements `ports.Budgets`, under the world's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._budgets: dict[str, Budget] = {}
        self.holds: dict[str, Hold] = {}
        self._entries: dict[str, list[Entry]] = defaultdict(list)

    async def create(self, declaration: Declaration) -> Budget:
        """See the port."""
        known = self._budgets.get(declaration.id)
        if known is not None:
            return limits.same_again(known, declaration)
        budget = limits.declared(declaration, self._budgets.get(declaration.parent_id), self._clock.now())
        self._budgets[budget.id] = replace(budget, number=len(self._budgets) + 1)
        return self._budgets[budget.id]

    async def change(self, ask: ChangeAsk) -> Budget:
        """See the port."""
        budget = self._budgets.get(ask.budget_id)
        if budget is None:
            raise ledger.unknown_budget(ask.budget_id)
        for entry in self._entries[budget.id]:
            if ask.request_id and entry.request_id == ask.request_id:
                return limits.changed_again(budget, entry, ask)
        budget, entry = limits.changed(budget, ask, self._clock.now())
        self._budgets[budget.id] = budget
        self._entries[budget.id].append(entry)
        return budget

    async def hold(self, ask: HoldAsk) -> Moved | Refused:
        """See the port."""
        now = self._clock.now()
        known = self.holds.get(ask.hold_id)
        if known is not None:
            return ledger.taken_again(known, self._branch(known.budget_id), ask)
        step = ledger.take(self._branch(ask.budget_id), ask, now)
        if isinstance(step, Refused):
            refusing = step.refusal.budget
            self._budgets[refusing.id] = replace(refusing, refused_at=now)
            return step
        return self._kept(step)

    async def enlarge(self, ask: EnlargeAsk) -> Moved | Refused:
        """See the port."""
        known = self.holds.get(ask.hold_id)
        if known is None:
            raise ledger.unknown_hold(ask.hold_id)
        now = self._clock.now()
        step = ledger.enlarge(self._branch(known.budget_id), known, ask, now)
        if isinstance(step, Refused):
            self._budgets[step.refusal.budget.id] = replace(step.refusal.budget, refused_at=now)
            return step
        return self._kept(step)

    async def settle(self, ask: SettleAsk) -> Moved:
        """See the port."""
        known = self.holds.get(ask.hold_id)
        if known is None:
            raise ledger.unknown_hold(ask.hold_id)
        return self._kept(ledger.settle(self._branch(known.budget_id), known, ask, self._clock.now()))

    async def release(self, ask: ReleaseAsk) -> Hold:
        """See the port."""
        now = self._clock.now()
        known = self.holds.get(ask.hold_id)
        if known is None:
            known = self.holds[ask.hold_id] = ledger.tombstone(ask.hold_id, now)
        return self._kept(ledger.release(self._branch(known.budget_id), known, ask, now)).hold

    async def get(self, budget_id: str) -> Budget | None:
        """See the port."""
        return self._budgets.get(budget_id)

    async def find(self, tenant: str, root_id: str, after: int, most: int) -> Sequence[Budget]:
        """See the port."""
        found = [
            budget
            for budget in self._budgets.values()
            if budget.number > after and tenant in ("", budget.tenant) and (not root_id or root_id in budget.path)
        ]
        return found[:most]

    async def entries(self, budget_id: str, after: int, most: int) -> Sequence[Entry]:
        """See the port."""
        return self._entries[budget_id][after : after + most] if budget_id in self._entries else []

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[Hold]:
        """See the port."""
        found = (hold for name, hold in sorted(self.holds.items()) if name.startswith(prefix) and name > after)
        return [hold for hold in found if hold.state is HoldState.HELD][:most]

    async def mismatches(self, *, whole: bool = False) -> Sequence[Mismatch]:
        """See the port. Every look is whole."""
        entries = [entry for book in self._entries.values() for entry in book]
        return checking.check(self._budgets.values(), self.holds.values(), entries)

    async def reread(self, age: timedelta) -> Sequence[Mismatch] | None:
        """See the port. Nothing is ever taken as proven."""
        return None

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _branch(self, budget_id: str) -> list[Budget]:
        leaf = self._budgets.get(budget_id)
        return [self._budgets[name] for name in leaf.path] if leaf else []

    def _kept(self, step: ledger.Step) -> Moved:
        self.holds[step.answer.hold.id] = step.answer.hold
        self._budgets.update({budget.id: budget for budget in step.budgets})
        for entry in step.entries:
            self._entries[entry.budget_id].append(entry)
        return step.answer

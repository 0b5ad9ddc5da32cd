"""The ledger as routing sees it, over the real one in memory; a dollar is seven yuan."""

import asyncio
from collections.abc import Sequence

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.kernel.money import Money
from services.cost_quote.domain.budgets import (
    Amounts,
    Asked,
    ChangeAsk,
    Declaration,
    EnlargeAsk,
    HoldAsk,
    HoldState,
    Moved,
    Refused,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.domain.ledger import sentence
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.routing.ports.ledger import NoMoney, OpenHold


class FakeLedger:
    """Implements `ports.ledger.Ledger`. `asked` counts questions; `away` answers none, and those to one that is `cut`
    are cancelled from inside. Whether a budget is limited is told once `gate` is open."""

    def __init__(self, clock: Clock) -> None:
        self.budgets = MemoryBudgets(clock)
        self.asked = 0
        self.away = self.cut = False
        self.wrong: list[tuple[str, str]] = []
        self.said: set[tuple[str, int]] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def _ask(self) -> None:
        self.asked += 1
        if self.cut:
            raise asyncio.CancelledError
        if self.away:
            raise Fault.of("governance_backend_down", "the ledger does not answer")

    async def declare(
        self, budget: str, tenant: str, currency: str, limit: Money | None, reason: str, changed_at: int = 0
    ) -> Money | None:
        """See the port."""
        self._ask()
        known, most = await self.budgets.get(budget), limit.to_nanos() if limit else 0
        if known is None:
            hard = Amounts(most)
            await self.budgets.create(Declaration(budget, "tenant", "", tenant, currency=currency, hard=hard))
        elif limit and (changed_at or (budget, most) not in self.said):
            await self.budgets.change(ChangeAsk(budget, reason, Amounts(max(most, known.used.cost))))
        self.said.add((budget, most))
        now = await self.budgets.get(budget)
        return Money.from_nanos(currency, now.hard.cost) if limit and now else None

    async def lower(self, budget: str, limit: Money, stands: Money, reason: str) -> Money | None:
        """See the port."""
        self._ask()
        known = await self.budgets.get(budget)
        if known is None or known.hard.cost != stands.to_nanos():
            return None
        nearest = max(limit.to_nanos(), known.used.cost)
        await self.budgets.change(ChangeAsk(budget, reason, Amounts(nearest)))
        return Money.from_nanos(limit.currency, nearest)

    async def hold(self, hold: str, budget: str, cost: Money, attempts: int, subject: str) -> NoMoney | None:
        """See the port."""
        self._ask()
        return _refusal(await self.budgets.hold(HoldAsk(hold, budget, _asked(cost, attempts), subject)))

    async def cover(self, hold: str, cost: Money, reason: str) -> NoMoney | None:
        """See the port. Who asks at once asks before the first is answered."""
        self._ask()
        await asyncio.sleep(0)
        return _refusal(await self.budgets.enlarge(EnlargeAsk(hold, _asked(cost, 0), reason)))

    async def limited(self, budget: str) -> bool:
        """See the port."""
        self._ask()
        await self.gate.wait()
        known = await self.budgets.get(budget)
        if known is None:
            raise Fault.of("not_found", f"there is no budget {budget}")
        return known.hard != Amounts() or known.deadline_at is not None

    async def settle(self, hold: str, cost: Money, attempts: int, reason: str) -> None:
        """See the port."""
        self._ask()
        try:
            await self.budgets.settle(SettleAsk(hold, _asked(cost, attempts), reason, correct=True))
        except Fault as fault:
            if fault.code != "not_found":
                raise

    async def release(self, hold: str, reason: str) -> None:
        """See the port."""
        self._ask()
        await self.budgets.release(ReleaseAsk(hold, reason))

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """See the port."""
        found = await self.budgets.open_holds(prefix, after, most)
        return [OpenHold(item.id, item.created_at, item.currency) for item in found]

    async def mismatches(self) -> Sequence[tuple[str, str]]:
        """See the port."""
        return self.wrong

    def expect(self, hold: str, breaches: list[str]) -> None:
        """That Hold is held now; else it is a breach."""
        known = self.budgets.holds.get(hold)
        if known is None or known.state is not HoldState.HELD:
            breaches.append(f"{hold} is {known and known.state}, and something was sent")

    async def figures(self) -> list[tuple[str, float, float]]:
        """(budget, spent, held) of each, in units of its currency."""
        assert await self.budgets.mismatches() == []
        found = await self.budgets.find("", "", 0, 100)
        return [(item.id, item.spent.cost / 1e9, item.held.cost / 1e9) for item in found]


def _asked(cost: Money, attempts: int) -> Asked:
    nanos = cost.to_nanos()
    worth = {"CNY": nanos * 7, "USD": nanos} if cost.currency == "USD" else {"CNY": nanos, "USD": -(-nanos // 7)}
    return Asked(nanos, cost.currency, attempts, 0, worth)


def _refusal(outcome: Moved | Refused) -> NoMoney | None:
    if not isinstance(outcome, Refused):
        return None
    refusal = outcome.refusal
    return NoMoney(refusal.budget.id, refusal.budget.level, refusal.dimension, sentence(refusal))

"""Money for all work: held before anything is sent, settled at the end (COST-9, COST-12).

Laws of this file:
- no Task is sent without a Hold: the caller's own where it names one, else one under the root budget of its tenant's
  period, which has a limit where the tenant has a quota of money, and counts what is spent in any case;
- no call is sent without one of its own, or its share of one (`calls.call_holds`);
- a Task, and a call that does not share, has one Hold, of the most that all its tries may come to, named after it:
  asking again is safe. What costs nothing has one too: whether it does is known at the end;
- no try begins whose quote does not fit what is held and not yet spent: what it lacks is added under the same budget,
  or there is no try (COST-9, COST-11);
- if the ledger does not answer, nothing is sent (COST-11);
- a Hold is kept while it is open whether something was charged; whoever dies before a settlement leaves it to
  `settle_holds`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline
from libs.kernel.money import Money
from services.routing.domain.calls.call import Call, spent_in
from services.routing.domain.calls.sync_settings import sync_of
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.spending import Purse, attempts_made, purse_of, settled_cost, worst_cost
from services.routing.domain.task import Task
from services.routing.ports.ledger import Ledger, NoMoney, OpenHold

TASK, CALL, SHARED = "task:", "call:", "calls:"
UNKNOWN = "unknown"
ENDED = {"conflict": "ended", "not_found": UNKNOWN}
"""Faults by which the ledger says that nothing is reserved under an id, and what that means."""
KNOWN_MOST = 10_000
"""Budgets of periods that a process remembers to be declared."""

log = logging.getLogger(__name__)


class Funds:
    """Belongs to one process; remembers which budgets are declared as the catalogue says."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._declared: dict[str, Money | None] = {}
        self._declaring: dict[str, asyncio.Future[None]] = {}
        self._above: dict[str, tuple[Money, Money]] = {}
        """By budget: a quota that was given with more in use, and the limit that stands in its place."""

    async def for_task(self, catalog: Catalog, task: Task, inputs: Inputs, decision: Decision) -> None:
        """See to it that what an Attempt of a Task is quoted at fits what is held for it. Fault `budget_exhausted`."""
        terms, hold, needed = task.request.terms, TASK + task.id, needed_for(inputs, decision)
        if terms is not None and terms.hold:
            await self.cover(terms.hold, needed, hold)
            return
        if task.attempts and await self._covered(hold, needed):
            return
        attempts = task.request.attempts_within(inputs.policy.max_attempts)
        worst = worst_cost(inputs, decision, attempts)
        await self._take(catalog, task.request.tenant, hold, task.created_at, worst, needed, attempts)

    async def for_found(self, catalog: Catalog, task: Task, cost: Money) -> None:
        """Hold for what a provider may have of a Task already. Where there is no room it is booked all the same."""
        terms, hold = task.request.terms, TASK + task.id
        needed = task.spent + cost if task.spent.currency == cost.currency else cost
        try:
            if terms is not None and terms.hold:
                await self.cover(terms.hold, needed, hold)
            elif not (task.attempts and await self._covered(hold, needed)):
                await self._take(catalog, task.request.tenant, hold, task.created_at, cost, cost, 1)
        except Fault as fault:
            if fault.code != "budget_exhausted":
                raise
            log.warning("task %s: what its provider may charge is not held: %s", task.id, fault.message)

    async def for_call(self, catalog: Catalog, call: Call, inputs: Inputs, decision: Decision, held: bool) -> None:
        """The same for a try of a call that has a Hold of its own; `held` = a try before had it."""
        needed = needed_for(inputs, decision)
        if held:
            await self.cover(CALL + call.id, needed, CALL + call.id)
            return
        attempts = sync_of(inputs.policy).max_attempts
        worst = worst_cost(inputs, decision, attempts)
        await self._take(catalog, call.tenant, CALL + call.id, call.created_at, worst, needed, attempts)

    async def quota_for(self, catalog: Catalog, tenant: str, came_at: datetime) -> Purse | None:
        """The budget that limits what a tenant may spend in that period, declared; None without a quota of money."""
        purse = purse_of(catalog, tenant, came_at)
        if purse.limit is None:
            return None
        await self._ensure_declared(catalog, purse)
        try:
            await self._ledger.limited(purse.id)
        except Fault as fault:
            if fault.code != "not_found":
                raise
            self._declared.pop(purse.id, None)  # the ledger's database was put back to a time before
            await self._ensure_declared(catalog, purse)
        return purse

    async def open_shared(self, catalog: Catalog, purse: Purse, hold: str, cost: Money, attempts: int) -> bool:
        """A Hold that many calls will draw on; False, and there is none, where their budget limits anything."""
        await self._ensure_declared(catalog, purse)
        try:
            if await self._ledger.limited(purse.id):
                return False
        except Fault as fault:
            if fault.code != "not_found":  # else its database was put back, and the Hold declares it anew
                raise
        return await self._held(catalog, purse, hold, cost, attempts) is None

    async def settle_shared(self, hold: str, cost: Money, attempts: int, calls: int) -> None:
        """Book what all calls that drew on it have cost; nothing, where none did."""
        if calls:
            await self._ledger.settle(hold, cost, attempts, f"{calls} calls" if calls > 1 else "1 call")
        else:
            await self._ledger.release(hold, "no call came of it")

    async def settle_task(self, task: Task) -> bool:
        """Book what an ended Task has cost; whether that is known."""
        cost, terms = settled_cost(task), task.request.terms
        if cost is None or (terms is not None and terms.hold):
            return False
        await self._ledger.settle(TASK + task.id, cost, attempts_made(task), f"task {task.state.value}")
        return True

    def settle_call(self, call: Call) -> Awaitable[None]:
        """Book what an ended call has cost; a try that may have been charged, with its quote."""
        cost = spent_in(call.tries, call.currency)
        return self._ledger.settle(CALL + call.id, cost, len(call.tries), f"call {call.state.value}")

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """Of ours, those that are still held."""
        return await self._ledger.open_holds(prefix, after, most)

    async def give_up(self, hold: str, reason: str) -> None:
        """Give back what nothing came of."""
        await self._ledger.release(hold, reason)

    async def lower_limits(self) -> None:
        """A quota that was given with more in use follows what is given back, until it is reached. One that the ledger
        refuses, below a soft limit for example, keeps no other from it."""
        for budget, (limit, stands) in list(self._above.items()):
            try:
                left = await self._ledger.lower(budget, limit, stands, "the quota of the catalogue")
            except Fault as fault:
                log.warning("budget %s: its limit stays at %s, above the quota: %s", budget, stands.words(), fault)
                continue
            if left is None or left == limit:
                self._above.pop(budget, None)
            elif budget in self._above:
                self._above[budget] = limit, left

    async def mismatches(self) -> Sequence[tuple[str, str]]:
        """(budget, what is wrong) of each that does not add up."""
        return await self._ledger.mismatches()

    async def _take(
        self,
        catalog: Catalog,
        tenant: str,
        hold: str,
        came_at: datetime,
        worst: Money,
        needed: Money,
        attempts: int,
    ) -> None:
        """`worst` of all tries, of which one needs that much."""
        purse = purse_of(catalog, tenant, came_at)
        try:
            _allowed(await self._held(catalog, purse, hold, worst, attempts))
        except Fault as fault:
            if fault.code != "already_exists":  # else taken by an earlier step, at the quotes of that time
                raise
            await self.cover(hold, needed, hold)

    async def _held(self, catalog: Catalog, purse: Purse, hold: str, worst: Money, attempts: int) -> NoMoney | None:
        """A Hold under a budget that is declared; declared anew where the ledger does not know it any more, because its
        database was put back to a time before."""
        for known in (purse.id in self._declared, False):
            await self._ensure_declared(catalog, purse)
            try:
                return await self._ledger.hold(hold, purse.id, worst, attempts, hold)
            except Fault as fault:
                if fault.code != "not_found" or not known:
                    raise
                self._declared.pop(purse.id, None)
        raise AssertionError("the second look answers or raises")

    async def _ensure_declared(self, catalog: Catalog, purse: Purse) -> None:
        """The budget is there with what the catalogue says of it."""
        while purse.id not in self._declared or self._declared[purse.id] != purse.limit:
            await self._declare(purse, catalog.revision)

    async def _declare(self, purse: Purse, revision: int) -> None:
        """Once for all that need it at the turn of a period, or when its limit has changed."""
        begun = self._declaring.get(purse.id)
        if begun is None:
            begun = self._declaring[purse.id] = asyncio.ensure_future(self._declared_as(purse, revision))
            begun.add_done_callback(lambda done: self._tried(purse.id, done))
        await asyncio.shield(begun)

    def _tried(self, budget: str, done: "asyncio.Future[None]") -> None:
        """Whoever waits is told; if nobody does any more, the next one tries again."""
        del self._declaring[budget]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.info("budget %s was not declared: %s", budget, error)

    async def _declared_as(self, purse: Purse, revision: int) -> None:
        carry_deadline(None)
        changed_at = revision if purse.id in self._declared else 0
        reason = f"catalogue revision {revision} declares it"
        stands = await self._ledger.declare(purse.id, purse.tenant, purse.currency, purse.limit, reason, changed_at)
        self._above.pop(purse.id, None)
        if stands is not None and purse.limit is not None and stands != purse.limit:
            self._above[purse.id] = purse.limit, stands
        if len(self._declared) >= KNOWN_MOST:
            self._declared.clear()
        self._declared[purse.id] = purse.limit

    async def _covered(self, hold: str, needed: Money) -> bool:
        """As `cover`; False where there is no such Hold: another hand has brought the Task as far as it is."""
        try:
            await self.cover(hold, needed, hold)
        except Fault as fault:
            if fault.metadata.get("hold") != UNKNOWN:
                raise
            return False
        return True

    async def cover(self, hold: str, needed: Money, subject: str) -> None:
        """What is needed in all fits the Hold, or is added to it under the same budget (COST-11)."""
        try:
            refused = await self._ledger.cover(hold, needed, f"{subject} costs more than was held")
        except Fault as fault:
            if fault.code not in ENDED:
                raise
            text = f"{fault.message}: nothing is sent without a Hold"
            raise Fault.of("budget_exhausted", text, metadata={"hold": ENDED[fault.code]}) from fault
        _allowed(refused)


def needed_for(inputs: Inputs, decision: Decision) -> Money:
    """What the choice and everything before it come to."""
    quote = inputs.quotes[decision.chosen].amount or Decimal(0)
    return Money(inputs.currency, inputs.spent.amount + quote)


def _allowed(refused: NoMoney | None) -> None:
    if refused is not None:
        told = {"budget": refused.budget, "level": refused.level, "dimension": refused.dimension}
        raise Fault.of("budget_exhausted", refused.message, metadata=told)


async def quietly(work: Callable[[], Awaitable[object]], what: str) -> None:
    """A settlement that fails is made up for by `settle_holds`."""
    try:
        await work()
    except Fault as fault:
        log.warning("%s: its Hold was not settled now: %s", what, fault)

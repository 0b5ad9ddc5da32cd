"""Money for work of tenants that have a quota of it: held before anything is sent, settled at the end (COST-9, 12).

Laws of this file:
- a tenant without such a quota costs no question; nor does work that its caller's own Hold pays for;
- a Task and a call have one Hold each, of the most that all its tries may come to, named after it:
  asking again is safe;
- if the ledger does not answer, nothing is sent (COST-11);
- a Hold is kept while it is open whether something was charged; whoever dies before a settlement leaves it to
  `settle_holds`.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.domain.calls.call import Call, spent_in
from services.routing.domain.calls.sync_settings import sync_of
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.spending import attempts_made, budget_id, settled_cost, worst_cost
from services.routing.domain.task import Task
from services.routing.ports.ledger import Ledger, OpenHold

TASK, CALL = "task:", "call:"
KNOWN_MOST = 1024

log = logging.getLogger(__name__)


class Funds:
    """Belongs to one process; remembers which budgets are declared as the catalogue says."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._declared: dict[str, Money] = {}

    async def for_task(self, catalog: Catalog, task: Task, inputs: Inputs, decision: Decision) -> None:
        """Hold for a Task before its first Attempt. Fault `budget_exhausted`."""
        terms = task.request.terms
        if task.attempts or (terms is not None and terms.hold):
            return
        attempts = task.request.attempts_within(inputs.policy.max_attempts)
        await self._take(catalog, task.request.tenant, TASK + task.id, task.created_at, inputs, decision, attempts)

    async def for_call(self, catalog: Catalog, call: Call, inputs: Inputs, decision: Decision) -> bool:
        """Hold for a call before its first try; whether it needed one. Fault `budget_exhausted`."""
        if not self.pays(catalog, call.tenant):
            return False
        attempts = sync_of(inputs.policy).max_attempts
        return await self._take(catalog, call.tenant, CALL + call.id, call.created_at, inputs, decision, attempts)

    async def settle_task(self, task: Task) -> bool:
        """Book what an ended Task has cost; whether that is known."""
        cost, terms = settled_cost(task), task.request.terms
        if cost is None or (terms is not None and terms.hold):
            return False
        await self._ledger.settle(TASK + task.id, cost, attempts_made(task), f"task {task.state.value}")
        return True

    async def settle_call(self, call: Call) -> None:
        """Book what an ended call has cost; a try that may have been charged, with its quote."""
        cost = spent_in(call.tries, call.currency)
        await self._ledger.settle(CALL + call.id, cost, len(call.tries), f"call {call.state.value}")

    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """Of ours, those that are still held."""
        return await self._ledger.open_holds(prefix, after, most)

    async def give_up(self, hold: str, reason: str) -> None:
        """Give back what nothing came of."""
        await self._ledger.release(hold, reason)

    async def mismatches(self) -> Sequence[tuple[str, str]]:
        """(budget, what is wrong) of each that does not add up."""
        return await self._ledger.mismatches()

    def pays(self, catalog: Catalog, tenant: str) -> bool:
        """Whether work of that tenant needs a Hold."""
        known = catalog.tenants.get(tenant)
        return known is not None and known.spend is not None

    async def _take(
        self,
        catalog: Catalog,
        tenant: str,
        hold: str,
        came_at: datetime,
        inputs: Inputs,
        decision: Decision,
        attempts: int,
    ) -> bool:
        known = catalog.tenants.get(tenant)
        if known is None or known.spend is None:
            return False
        spend = known.spend
        budget = budget_id(tenant, spend.period, came_at)
        limit = Money(spend.currency or catalog.currency, spend.cost)
        if self._declared.get(budget) != limit:
            await self._ledger.declare(budget, tenant, limit, f"catalogue revision {catalog.revision} declares it")
            if len(self._declared) >= KNOWN_MOST:
                self._declared.clear()
            self._declared[budget] = limit
        refused = await self._ledger.hold(hold, budget, worst_cost(inputs, decision, attempts), attempts, hold)
        if refused is not None:
            told = {"budget": refused.budget, "level": refused.level, "dimension": refused.dimension}
            raise Fault.of("budget_exhausted", refused.message, metadata=told)
        return True


async def quietly(work: Callable[[], Awaitable[object]], what: str) -> None:
    """A settlement that fails is made up for by `settle_holds`."""
    try:
        await work()
    except Fault as fault:
        log.warning("%s: its Hold was not settled now: %s", what, fault)

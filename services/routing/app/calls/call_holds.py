"""Which Hold pays for a call, and who settles it (COST-9).

Laws of this file:
- nothing is sent for a call that has not drawn on a Hold, or taken one of its own;
- a call has a Hold of its own where its tenant's money is limited, by a quota or by an operator: there each figure
  counts, and what others may need stands in nobody's way. Where nothing is limited calls share Holds, a few seconds'
  calls each: what is held and spent is the same, told in fewer words;
- a call that has ended draws on nothing any more: its caller may have left while a place for it was still looked for;
- a shared Hold is settled by what its calls have cost, when each of them is on record. Where this process cannot know
  that, or dies, `settle_holds` does it by the records, which name it.
"""

import asyncio
import logging
from collections.abc import Awaitable
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.deadlines import carry_deadline
from libs.kernel.money import Money
from libs.kernel.world import World
from services.routing.app.calls.shared_hold import SharedHold
from services.routing.app.funds import CALL, SHARED, Funds, needed_for, quietly
from services.routing.domain.calls.call import Call, spent_in
from services.routing.domain.calls.sync_settings import sync_of
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.spending import Purse, purse_of, worst_cost

SERVES_S = 10.0
"""New calls draw on a shared Hold for so long: what has been spent is on the books soon after."""
FEWEST, MOST = 16, 1024
"""Calls that a shared Hold has room for: twice as many as the last one of its budget served."""

log = logging.getLogger(__name__)


class CallHolds:
    """Belongs to one process and one event loop; remembers its shared Holds by the budget that they are under."""

    def __init__(self, funds: Funds, world: World, own_each: bool = False) -> None:
        self._funds = funds
        self._world = world
        self._own_each = own_each
        self._current: dict[str, SharedHold] = {}
        self._limited_until: dict[str, float] = {}
        self._opening: dict[str, asyncio.Future[bool]] = {}
        self._closed: set[SharedHold] = set()
        self._served: dict[str, int] = {}

    def payment(self) -> "Payment":
        """Of a call that comes now."""
        return Payment(self)

    def fund(
        self, payment: "Payment", catalog: Catalog, call: Call, inputs: Inputs, decision: Decision
    ) -> Awaitable[None] | None:
        """See to it that what a try is quoted at fits what is held for its call; None where it does already. What is
        awaited raises Fault `budget_exhausted` where there is no room."""
        if payment.over:
            return None
        if payment.own:
            return self._own(payment, catalog, call, inputs, decision)
        needed = needed_for(inputs, decision).amount
        if payment.shared is not None and payment.shared.currency == inputs.currency:
            more = needed - payment.drawn
            if more <= 0 or payment.shared.add(more):
                payment.drawn = max(payment.drawn, needed)
                return None
            return self._add(payment, payment.shared, more, call)
        purse = purse_of(catalog, call.tenant, call.created_at)
        if self._own_each or purse.limit is not None or purse.currency != inputs.currency:
            return self._own(payment, catalog, call, inputs, decision)
        tries = sync_of(inputs.policy).max_attempts
        worst = worst_cost(inputs, decision, tries).amount
        known = self._current.get(purse.id)
        if known is not None and self._draws(payment, known, worst, tries):
            return None
        return self._share(payment, purse, catalog, call, inputs, decision, worst, tries)

    def _draws(self, payment: "Payment", shared: SharedHold, amount: Decimal, tries: int) -> bool:
        if payment.over:
            return True
        if self._world.clock.monotonic() >= shared.until or not shared.draw(amount, tries):
            return False
        payment.shared, payment.drawn = shared, amount
        return True

    async def _share(
        self,
        payment: "Payment",
        purse: Purse,
        catalog: Catalog,
        call: Call,
        inputs: Inputs,
        decision: Decision,
        worst: Decimal,
        tries: int,
    ) -> None:
        """Draw on a new Hold, opened once for all that wait for it; or take one of its own, where money is limited."""
        while await self._open(purse, catalog, worst, tries):
            known = self._current.get(purse.id)
            if known is not None and self._draws(payment, known, worst, tries):
                return
        if not payment.over:
            await self._own(payment, catalog, call, inputs, decision)

    async def _open(self, purse: Purse, catalog: Catalog, worst: Decimal, tries: int) -> bool:
        begun = self._opening.get(purse.id)
        if begun is None:
            begun = self._opening[purse.id] = asyncio.ensure_future(self._opened(purse, catalog, worst, tries))
            begun.add_done_callback(lambda done: self._tried(purse.id, done))
        return await asyncio.shield(begun)

    def _tried(self, budget: str, done: "asyncio.Future[bool]") -> None:
        """Whoever waits is told; if nobody does any more, the next one tries again."""
        del self._opening[budget]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.info("calls of budget %s have no Hold to share: %s", budget, error)

    async def _opened(self, purse: Purse, catalog: Catalog, worst: Decimal, tries: int) -> bool:
        """Whether there is a shared Hold now; False where money is limited, or has become so."""
        carry_deadline(None)
        now = self._world.clock.monotonic()
        if now < self._limited_until.get(purse.id, 0.0):
            return False
        if purse.id in self._current:
            self._close(purse.id)
        room = min(MOST, max(FEWEST, 2 * self._served.get(purse.id, 0)))
        name = f"{SHARED}{self._world.ids.ulid()}"
        held = Money(purse.currency, room * worst)
        if not await self._funds.open_shared(catalog, purse, name, held, room * tries):
            self._limited_until[purse.id] = now + SERVES_S
            return False
        self._current[purse.id] = SharedHold(name, purse.currency, held.amount, room * tries, now + SERVES_S)
        return True

    def _close(self, budget: str) -> None:
        """No call draws on it any more for the first time; it is settled with the last that has."""
        shared = self._current.pop(budget)
        self._closed.add(shared)
        self._served.pop(budget, None)
        if 2 * shared.calls > FEWEST:
            self._served[budget] = shared.calls

    async def _add(self, payment: "Payment", shared: SharedHold, more: Decimal, call: Call) -> None:
        """A later try costs more than was drawn for all of them. It is claimed before the ledger is asked: what others
        draw or add meanwhile must not count on the same money. Where the ledger refuses, the call ends, and its end
        gives back what it has drawn."""
        needed = shared.claim(more)
        payment.drawn += more
        await self._funds.cover(shared.id, Money(shared.currency, needed), CALL + call.id)
        shared.covered(needed)

    async def _own(self, payment: "Payment", catalog: Catalog, call: Call, inputs: Inputs, decision: Decision) -> None:
        before, payment.own = payment.own, True  # also where the answer is lost
        try:
            await self._funds.for_call(catalog, call, inputs, decision, before)
        except Fault as fault:
            payment.own = before or fault.code != "budget_exhausted"
            raise

    # --- The end ------------------------------------------------------------------------------------------------------

    async def settle_shared(self, everything: bool = False) -> None:
        """Settle those whose time is over and whose calls have ended, or with `everything` all that have ended."""
        now = self._world.clock.monotonic()
        for budget, shared in list(self._current.items()):
            if everything or now >= shared.until:
                self._close(budget)
        self._limited_until = {name: until for name, until in self._limited_until.items() if now < until}
        over = [shared for shared in self._closed if not shared.open]
        self._closed.difference_update(over)
        await asyncio.gather(*(self._settled(shared) for shared in over if shared.sound))

    async def _settled(self, shared: SharedHold) -> None:
        cost = Money(shared.currency, shared.spent)
        await quietly(lambda: self._funds.settle_shared(shared.id, cost, shared.tries, shared.calls), shared.id)


class Payment:
    """How one call is paid: by a Hold of its own, or by its share of one."""

    __slots__ = ("_holds", "drawn", "over", "own", "shared")

    def __init__(self, holds: CallHolds) -> None:
        self._holds = holds
        self.own = False
        """Whether it may have taken one of its own."""
        self.shared: SharedHold | None = None
        self.drawn = Decimal(0)
        self.over = False
        """Its call has ended, and nothing will be sent for it."""

    def hold(self, call_id: str) -> str:
        """The name of what pays for a call; empty where nothing does yet."""
        if self.own:
            return CALL + call_id
        return self.shared.id if self.shared is not None else ""

    def kept(self, call: Call, on_record: bool) -> None:
        """The call has ended; whether its record, as it is here, is known to be kept. Where it has one of its own too,
        because the currency has changed, that counts its tries."""
        shared, self.shared = self.shared, None
        if shared is None:
            return
        if on_record or not call.tries:
            tries = 0 if self.own else len(call.tries)
            shared.ended(self.drawn, spent_in(call.tries, shared.currency).amount, tries)
        else:
            shared.lost()

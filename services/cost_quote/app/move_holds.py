"""Holds: taken, settled, given back, with money in whatever currency the caller counts in."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from libs.faults.fault import Fault
from libs.telemetry import metrics, names
from services.cost_quote.domain.budgets import (
    NOTHING,
    EnlargeAsk,
    Hold,
    HoldAsk,
    Moved,
    Refused,
    ReleaseAsk,
    SettleAsk,
)
from services.cost_quote.domain.converting import NEAREST, UP, Rounding, converted_into
from services.cost_quote.domain.ledger import sentence
from services.cost_quote.ports import Budgets, PriceBooks

LONGEST_ID = 256
Ask = TypeVar("Ask", HoldAsk, EnlargeAsk, SettleAsk)
Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class MoveHolds:
    """Converts by the rates in force, lets the store decide."""

    def __init__(self, budgets: Budgets, books: PriceBooks) -> None:
        self._budgets = budgets
        self._books = books

    async def take(self, ask: HoldAsk) -> Moved | Refused:
        """The Hold, or why there is none. Faults as in the port, and `validation_failed`."""
        _check_id(ask.hold_id)
        if not ask.budget_id:
            raise Fault.invalid(("/budget_id", "is required"))
        outcome = await self._moved(ask, self._budgets.hold, UP)
        refused = isinstance(outcome, Refused)
        dimension = outcome.refusal.dimension if isinstance(outcome, Refused) else ""
        result = "refused" if refused else "taken"
        metrics.PROCESS.counter(names.BUDGET_HOLDS, result=result, dimension=dimension).inc()
        if isinstance(outcome, Refused):
            log.info("hold %s refused: %s", ask.hold_id, sentence(outcome.refusal))
        return outcome

    async def enlarge(self, ask: EnlargeAsk) -> Moved | Refused:
        """The Hold, which holds at least that much money now, or why it does not. Faults as in the port."""
        _check_id(ask.hold_id)
        outcome = await self._moved(ask, self._budgets.enlarge, UP)
        if isinstance(outcome, Refused):
            log.info("hold %s was not enlarged: %s", ask.hold_id, sentence(outcome.refusal))
        return outcome

    async def settle(self, ask: SettleAsk) -> Moved:
        """The Hold with what was booked; more than was held is booked and logged as an anomaly."""
        _check_id(ask.hold_id)
        moved = await self._moved(ask, self._budgets.settle, NEAREST)
        if moved.hold.beyond != NOTHING:
            metrics.PROCESS.counter(names.BUDGET_OVERRUNS).inc()
            log.warning("hold %s of budget %s cost more than was held", ask.hold_id, moved.hold.budget_id)
        return moved

    async def release(self, ask: ReleaseAsk) -> Hold:
        """The Hold after it; without a budget where nobody had taken it."""
        _check_id(ask.hold_id)
        return await self._budgets.release(ask)

    async def _moved(self, ask: Ask, move: Callable[[Ask], Awaitable[Answer]], rounding: Rounding) -> Answer:
        """Money is nearly always in its budget's own currency: the rates are read where the store has found that it
        is not, and it is asked again."""
        asked = ask.asked
        try:
            return await move(replace(ask, asked=asked.with_worth({asked.currency: asked.cost})))
        except Fault as fault:
            if fault.code != "validation_failed" or not asked.currency:
                raise
        rates = converted_into(await self._books.current(), asked.currency, asked.cost, rounding)
        return await move(replace(ask, asked=asked.with_worth(rates)))


def _check_id(hold_id: str) -> None:
    if not hold_id or len(hold_id) > LONGEST_ID or "\0" in hold_id:
        raise Fault.invalid(("/hold_id", f"must be a text of 1 to {LONGEST_ID} characters without NUL"))

"""The budget of a tenant's quota, for productions to hang below (AUTH-2), over the real ledger in memory."""

import pytest

from libs.faults.fault import Fault
from services.cost_quote.domain.budgets import Amounts, ChangeAsk
from services.cost_quote.store.budgets_memory import MemoryBudgets
from tests.unit.routing.test_funds import DAY, house


async def test_the_budget_of_a_quota_is_declared_for_whoever_asks() -> None:
    """AUTH-2: with its limit, once, though nothing of the tenant came yet; anew where the ledger's database was put
    back; what a person has raised meanwhile stays. Without a quota there is none."""
    play = house("5.00")
    offers, now = await play.desk.catalog.current(), play.clock.now()
    for _ in range(2):
        purse = await play.desk.funds.quota_for(offers, "t", now)
        assert purse is not None
        assert (purse.id, purse.currency) == (DAY, "CNY")
    await play.ledger.budgets.change(ChangeAsk(DAY, "ann", Amounts(9_000_000_000)))
    assert await play.desk.funds.quota_for(offers, "t", now) == purse
    known = await play.ledger.budgets.get(DAY)
    assert known is not None
    assert known.hard == Amounts(9_000_000_000)
    play.ledger.budgets = MemoryBudgets(play.clock)
    assert await play.desk.funds.quota_for(offers, "t", now) == purse
    assert await play.ledger.figures() == [(DAY, 0, 0)]
    assert await play.desk.funds.quota_for(offers, "stranger", now) is None
    play.ledger.away = True
    with pytest.raises(Fault) as caught:
        await play.desk.funds.quota_for(offers, "t", now)
    assert caught.value.retryable

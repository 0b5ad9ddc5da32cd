"""A quota of money that is given while calls share a Hold."""

from dataclasses import replace
from decimal import Decimal

from libs.kernel.money import Money
from services.cost_quote.domain.budgets import Amounts, ChangeAsk
from services.routing.app.calls.call_holds import SERVES_S
from services.routing.domain.catalog import Spend, Tenant
from tests.unit.routing.call_stage import call_stage, chat_catalog, serving
from tests.unit.routing.test_shared_holds import MONTH, cost_of, figures, invoke, record, walk


async def test_a_quota_that_is_given_meanwhile_counts_at_once() -> None:
    """COST-9: the shared Hold of a moment ago serves nobody any more."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        quota = {"t": Tenant("t", 1, spend=Spend(Decimal(100), "month"))}
        play.catalog.revisions.append(replace(chat_catalog(), revision=2, tenants=quota))
        await invoke(play, "c2")
        assert (await record(play, "c2")).hold == "call:c2"


async def test_a_quota_counts_no_room_that_nobody_used() -> None:
    """AUTH-2, COST-9: given below what a shared Hold holds, it refuses, and is in force when that is settled; a
    raise of a person's that comes before stands."""
    for raised, limit in ((0, 10), (500, 500)):
        async with serving(call_stage()) as play:
            await invoke(play, "c1")
            quota = {"t": Tenant("t", 1, spend=Spend(Decimal(10), "month"))}
            play.catalog.revisions.append(replace(chat_catalog(), revision=2, tenants=quota))
            assert (await play.refused("c2")).code == "budget_exhausted"
            if raised:
                budgets = play.tasks.ledger.budgets
                await budgets.change(ChangeAsk(MONTH, "Ann: more room", Amounts(raised * 10**9)))
            play.clock.advance(SERVES_S)
            await walk(play)()
            budget = await play.tasks.ledger.budgets.get(MONTH)
            assert budget is not None
            assert budget.hard.cost == limit * 10**9


async def test_a_quota_that_cannot_be_reached_is_in_nobodys_way() -> None:
    """COST-9, COST-11: a soft limit above it, which a person may change, stops neither this walk nor the next."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        quota = {"t": Tenant("t", 1, spend=Spend(Decimal(10), "month"))}
        play.catalog.revisions.append(replace(chat_catalog(), revision=2, tenants=quota))
        assert (await play.refused("c2")).code == "budget_exhausted"
        budgets = play.tasks.ledger.budgets
        await budgets.change(ChangeAsk(MONTH, "to be told", soft=Amounts(20 * 10**9)))
        await play.tasks.ledger.hold("call:c1", MONTH, Money("CNY", Decimal(0)), 1, "forgotten")
        play.clock.advance(SERVES_S)
        await walk(play)()
        assert await figures(play) == (await cost_of(play, "c1") * 2, 0)
        await budgets.change(ChangeAsk(MONTH, "no more", soft=Amounts()))
        await walk(play)()
        budget = await budgets.get(MONTH)
        assert budget is not None
        assert budget.hard.cost == 10 * 10**9

"""Productions of a tenant with a quota of money hang below its budget of the period (AUTH-2)."""

from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.check_production import check_production
from services.runs.domain.run import RunState
from services.runs.domain.task_view import Quota
from tests.unit.runs.house import House, states
from tests.unit.runs.test_gates import FRAME, house, production

MONTH = "tenant:a:month:2026-11-01:CNY"
ITS_OWN = {"currency": "CNY", "cost": "50.00"}


def bounded(room: str = "2.00") -> House:
    """Tenant `a` may spend so much; a picture may come to 2.00 and costs 1.00."""
    home = house()
    home.routing.quotas["a"] = Quota(MONTH, "CNY")
    home.budgets.hard[MONTH] = Decimal(room)
    return home


def picture(**budget: Any) -> dict[str, Any]:
    """One, under a budget of its own or what is said."""
    return production(FRAME, budget=budget or ITS_OWN)


async def test_a_production_is_paid_by_the_quota_of_its_tenant() -> None:
    """AUTH-2, COST-9, COST-10: whatever its own budget says, without room in the tenant's it asks a person; the
    level is the tenant's, and a raise there lets it go on."""
    home = bounded()
    first = await home.carry(await home.produce(picture()))
    assert (first.state, first.budget_parent) == (RunState.SUCCEEDED, MONTH)
    second = await home.carry(await home.produce(picture()))
    assert states(second)["frame"] == "waiting_human"
    (review,) = await home.reviews(second)
    assert review.question.root_cause == f"budget:{MONTH}"
    second = await home.decide(second, "raise_budget", budget={"currency": "CNY", "amount": "9.00"})
    assert second.state is RunState.SUCCEEDED
    await home.rebuilds(second)


async def test_a_run_stays_where_it_was_made() -> None:
    """AUTH-2, RUN-6: the next period, or a quota that is gone, does not move it: a budget that is lost is made again
    below the same one."""
    home = bounded()
    run = await home.produce(picture())
    home.budgets.above.clear()
    home.routing.quotas["a"] = Quota("tenant:a:month:2026-12-01:CNY", "CNY")
    await home.carry(run)
    assert home.budgets.above == {f"run:{run.id}": MONTH}
    await home.rebuilds(run)


async def test_without_a_quota_or_below_an_operators_budget_nothing_changes() -> None:
    """AUTH-2: a root of its own, or what an operator made; neither is counted by a quota."""
    home = house()
    run = await home.produce(picture())
    assert (run.budget_parent, home.budgets.above) == ("", {})
    home = bounded("0.50")
    run = await home.carry(await home.produce(picture(currency="USD", parent="film")))
    assert (run.state, run.budget_parent) == (RunState.SUCCEEDED, "")
    assert home.budgets.above == {f"run:{run.id}": "film"}


@pytest.mark.parametrize(
    "budget, pointer, remedy",
    [
        ({"currency": "USD", "cost": "5"}, "currency", "write CNY"),
        ({"currency": "USD", "parent": MONTH}, "currency", "write CNY"),
        ({"currency": "CNY", "parent": "tenant:a:month:2026-10-01:CNY"}, "parent", "leave it out"),
        ({"currency": "CNY", "parent": "run:01"}, "parent", "leave it out"),
    ],
)
async def test_what_would_spend_beside_the_quota_is_refused(budget: dict[str, str], pointer: str, remedy: str) -> None:
    """AUTH-2: when the Run is created and when it is only checked, with the field and the remedy."""
    home = bounded()
    with pytest.raises(Fault) as caught:
        await home.produce(picture(**budget))
    (error,) = caught.value.errors
    assert (error.pointer, remedy in error.reason) == (f"/production/budget/{pointer}", True)
    assert home.budgets.above == {}
    document = picture(**budget)
    with pytest.raises(Fault):
        await check_production(home.routing, home.budgets, "a", "r", document, home.clock.now())


async def test_the_budget_of_the_period_itself_may_be_named() -> None:
    """AUTH-2: it is the same as naming none."""
    home = bounded()
    run = await home.produce(picture(currency="CNY", parent=MONTH))
    assert home.budgets.above == {f"run:{run.id}": MONTH}


async def test_a_single_generation_names_no_budget_beside_the_quota() -> None:
    """AUTH-2: an operator's it may, one of the ledger's own it may not."""
    home = bounded()
    assert (await home.create(budget_id="film")).budget_id == "film"
    assert (await home.create(budget_id=MONTH)).budget_id == MONTH
    with pytest.raises(Fault) as caught:
        await home.create(budget_id="run:01")
    assert [error.pointer for error in caught.value.errors] == ["/options/budget"]


async def test_nothing_is_made_while_nobody_tells_the_quota() -> None:
    """AUTH-2: routing that is away is a Fault that passes; what is wrong with the document is told all the same."""
    home = bounded()
    home.routing.mute = Fault.of("governance_backend_down", "the ledger does not answer")
    with pytest.raises(Fault) as caught:
        await home.produce(picture())
    assert (caught.value.code, caught.value.retryable) == ("governance_backend_down", True)
    assert await home.runs.page("a", [], None, "", 10) == []
    with pytest.raises(Fault) as caught:
        await home.produce(replaced(model="unknown"))
    assert [error.pointer for error in caught.value.errors] == ["/production/nodes/0/model"]
    home.routing.mute = None
    assert (await home.produce(picture())).budget_parent == MONTH


def replaced(**fields: Any) -> dict[str, Any]:
    """A picture that is declared otherwise."""
    return production({**FRAME, **fields}, budget=ITS_OWN)

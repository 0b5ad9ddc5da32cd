"""What a Task may cost at worst, against what selection can ever make of it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.submit_task import Submission, check_task
from services.routing.domain.catalog import Admin
from services.routing.domain.decision import Inputs, QuoteView, Verdict
from services.routing.domain.estimate import Estimate, estimate
from services.routing.domain.request import Request, Terms
from services.routing.domain.selection import select
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import catalog
from tests.unit.routing.selection_inputs import FULL, FULL_INPUT, OPEN, market, offer
from tests.unit.routing.test_selection_properties import markets


def worst(inputs: Inputs) -> str:
    """The worst cost as text."""
    cost = estimate(inputs).worst_cost
    return "" if cost is None else str(cost.amount)


def test_the_highest_admissible_quote_counts_for_every_attempt():
    """COST-9: `max_attempts` x the highest admissible quote; ill and full Supplies count, for they may be well then."""
    inputs = market(
        offer("a/one", price="4.00"), offer("b/two", price="5.00", health=OPEN), offer("c/three", price="6.00",
        capacity=FULL), offer("d/four", price="6.01"), offer("e/five", "fallback", "8.00")
    )  # fmt: skip
    assert estimate(inputs) == Estimate(Money("CNY", Decimal("16.00")), 2)
    assert worst(replace(inputs, policy=replace(inputs.policy, max_attempts=3))) == "24.00"


def test_the_absolute_limit_holds_for_the_whole_task():
    """COST-6, COST-9: it is compared with spent + quote, so it bounds the sum; in an emergency that limit does."""
    inputs = market(offer("a/one", price="30.00"))
    assert worst(inputs) == "50.00"
    assert worst(replace(inputs, policy=replace(inputs.policy, emergency_availability=True))) == "60.00"
    dear = market(offer("a/one", price="60.00"), policy_emergency_availability=True)
    assert worst(dear) == "100.00"


def test_what_could_never_serve_does_not_count():
    """COST-9, SEL-4..SEL-6, TIER-2: out of use, incapable, refusing real people, degraded for a strict request."""
    inputs = market(
        offer("a/one", price="4.00"),
        offer("b/off", price="5.00", admin=Admin.DRAINING),
        offer("c/small", price="5.00", capabilities={"inputs": {}}),
        offer("d/less", "degraded", "7.00"),
        given=FULL_INPUT,
        policy_max_attempts=1,
    )
    assert worst(inputs) == "7.00"
    assert worst(replace(inputs, request=replace(inputs.request, degradation="strict"))) == "4.00"


def test_terms_narrow_what_a_task_may_cost():
    """COST-9, HUMAN-2: fewer Attempts than the policy permits, never more; only the Supply that was named."""
    inputs = market(offer("a/one", price="4.00"), offer("b/two", price="5.00"))
    for terms, cost, attempts in (
        (Terms(max_attempts=1), "5.00", 1),
        (Terms(max_attempts=9), "10.00", 2),
        (Terms(supply="a/one"), "8.00", 2),
    ):
        found = estimate(replace(inputs, request=replace(inputs.request, terms=terms)))
        assert (str(found.worst_cost.amount), found.max_attempts) == (cost, attempts), terms


@pytest.mark.parametrize(
    "inputs, words",
    [
        (market(offer("a/one", price=None)), "a/one at SEL-10 (no rule)"),
        (market(offer("a/one", price="60.00")), "over the limit: spent 0.00 + 60.00 > 50.00"),
        (market(offer("a/one", capabilities={"inputs": {}}), given=FULL_INPUT), "needs 9 images, admits 0"),
        (market(), "none is bound"),
    ],
)
def test_without_a_price_it_says_why(inputs: Inputs, words: str):
    """COST-4, COST-9: no amount is made up; the reason names the Supply and the step."""
    found = estimate(inputs)
    assert found.worst_cost is None
    assert words in found.unpriced_reason


@given(markets(), st.data())
def test_no_run_of_attempts_costs_more(inputs: Inputs, data: st.DataObject):
    """COST-6, COST-7, COST-9: whatever health and capacity become, the quotes of all permitted Attempts together stay
    within the estimate that was told before the first, and where there is none nothing is ever chosen."""
    inputs = replace(inputs, spent=Money.zero("CNY"), tried=())
    told = estimate(inputs)
    for _ in range(told.max_attempts):
        well = data.draw(st.booleans())
        now = replace(inputs, supply_health={}, supply_capacity={}, channel_health={}) if well else inputs
        decision = select(now)
        if decision.verdict is not Verdict.CHOSEN:
            continue
        quote = inputs.quotes[decision.chosen].amount
        assert quote is not None
        assert told.worst_cost is not None
        inputs = replace(
            inputs,
            spent=Money("CNY", inputs.spent.amount + quote),
            tried=tuple(dict.fromkeys((*inputs.tried, decision.chosen))),
        )
        assert inputs.spent.amount <= told.worst_cost.amount


async def test_checking_a_request_tells_what_it_may_cost():
    """COST-9: by the prices in force, with the Attempts permitted; nobody is refused because prices are not told."""
    play = stage()
    play.quotes.amounts = {"a/clip": Decimal("3.00"), "b/clip": Decimal("4.00")}
    asked = Submission("", Request("t", "clip", {"prompt": "p", "duration_s": 5}))
    assert await check_task(play.desk, asked) == Estimate(Money("CNY", Decimal("8.00")), 2)
    play.quotes.views = {name: QuoteView(unpriced_reason="no rule") for name in ("a/clip", "b/clip")}
    assert "a/clip at SEL-10 (no rule)" in (await check_task(play.desk, asked)).unpriced_reason
    play.quotes.revision = 0
    assert (await check_task(play.desk, asked)).unpriced_reason == "governance_backend_down: not told yet"
    play.catalog.revisions = [catalog(policy={"max_attempts": 1})]
    assert (await check_task(play.desk, asked)).max_attempts == 1


@pytest.mark.parametrize(
    "terms, pointer, words",
    [
        (Terms(supply="c/clip"), "/options/supply_id", "'c/clip' is not bound to model 'clip'; name one of a/clip, b/"),
        (Terms(max_attempts=-1), "/options/max_attempts", "at least 1"),
        (Terms(stage=-1), "/options/stage", "not be negative"),
        (Terms(blocking=-1), "/options/blocking", "not be negative"),
    ],
)
async def test_terms_that_cannot_hold_are_refused_by_name(terms: Terms, pointer: str, words: str):
    """SEL-2, HUMAN-2: a Supply that the model does not bind, a number of Attempts below nothing."""
    with pytest.raises(Fault) as refused:
        await check_task(stage().desk, Submission("", Request("t", "clip", {"prompt": "p"}, terms=terms)))
    assert refused.value.code == "validation_failed"
    (error,) = refused.value.errors
    assert error.pointer == pointer
    assert words in error.reason

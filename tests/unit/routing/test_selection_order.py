"""Order, guardrails, explanation and replay."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from libs.kernel.canonical import canonical_json
from libs.kernel.money import Money
from services.routing.domain.catalog import Admin, Kind, Order, RealPerson
from services.routing.domain.decision import HealthView, Verdict
from services.routing.domain.ordering import expected_cost, success_percent, wilson_low
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record, recorded_decision, recorded_inputs, replay, replays
from tests.unit.routing.selection_inputs import (
    FULL,
    FULL_INPUT,
    OPEN,
    busy,
    fate_of,
    fates,
    market,
    offer,
    ranking,
    rated,
)

ILL = HealthView(state="degraded", success_rate=1.0, samples=1000)

# Six offers, each better than the next in exactly one respect.
FIELD = (
    offer("a/id", price="5.00", health=rated(0.95), capacity=busy(1, 5), priority=1),
    offer("b/id", price="5.00", health=rated(0.95), capacity=busy(1, 5), priority=1),
    offer("c/slots", price="5.00", health=rated(0.95), capacity=busy(2, 5), priority=1),
    offer("d/cost", price="5.50", health=rated(0.95), capacity=busy(0, 5), priority=1),
    offer("e/rate", price="4.00", health=rated(0.80), capacity=busy(0, 5), priority=9),
    offer("f/health", price="3.80", health=ILL, capacity=busy(0, 5), priority=9),
)


@pytest.mark.parametrize(
    "order, expected",
    [
        (Order.STABLE_FIRST, ["a/id", "b/id", "c/slots", "d/cost", "e/rate", "f/health"]),
        (Order.COST_FIRST, ["f/health", "e/rate", "a/id", "b/id", "c/slots", "d/cost"]),
        (Order.MANUAL_PRIORITY, ["f/health", "e/rate", "a/id", "b/id", "c/slots", "d/cost"]),
    ],
)
def test_candidates_are_ordered_lexicographically_by_the_policy(order, expected):
    """SEL-12, SEL-18: each order compares its keys one after the other, without weights."""
    assert ranking(select(market(*FIELD, policy_order=order))) == expected


def test_only_manual_priority_reads_priority():
    """SEL-18: the other two orders never look at it."""
    offers = offer("a/x", priority=0), offer("b/y", priority=1_000_000)
    assert ranking(select(market(*offers, policy_order="manual_priority")))[0] == "b/y"
    for order in ("stable_first", "cost_first"):
        assert ranking(select(market(*offers, policy_order=order)))[0] == "a/x"


def test_success_rate_is_a_quantised_key():
    """SEL-19: Wilson's lower bound in whole per cent from min_samples on, the neutral 90 below."""
    assert success_percent(rated(1.0, samples=19), min_samples=20) == 90
    assert success_percent(rated(1.0, samples=20), min_samples=20) == 83
    assert success_percent(rated(0.95, samples=100), min_samples=20) == 88
    assert success_percent(rated(0.951, samples=100), min_samples=20) == 88, "noise below a step decides nothing"
    assert success_percent(HealthView(), min_samples=20) == 90
    assert success_percent(HealthView(success_rate=0.5, success_rate_low=0.4, samples=50), min_samples=20) == 40
    assert 0.0 <= wilson_low(0.0, 1) <= wilson_low(1.0, 1) <= 1.0


def test_noise_in_the_rate_does_not_beat_cost():
    """SEL-19, SEL-20: two rates in the same step are equal, so cost decides."""
    offers = offer("a/x", price="5.00", health=rated(0.951)), offer("b/y", price="4.00", health=rated(0.950))
    assert ranking(select(market(*offers))) == ["b/y", "a/x"]


def test_the_cost_of_a_success_counts_failures_where_they_are_charged():
    """SEL-20: quote / success estimate where the provider charges for failures, else the quote."""
    assert expected_cost(Decimal("5.00"), 50, charges_on_failure=False) == Decimal("5.00")
    assert expected_cost(Decimal("5.00"), 50, charges_on_failure=True) == Decimal("10.00")
    assert expected_cost(Decimal("5.00"), 0, charges_on_failure=True) == Decimal("500.00")
    offers = (
        offer("a/x", price="4.60", health=rated(0.9), charges_on_failure=True),
        offer("b/y", price="5.00", health=rated(0.9)),
    )
    assert ranking(select(market(*offers, policy_order="cost_first"))) == ["b/y", "a/x"]


def test_the_baseline_is_the_lowest_exact_quote_healthy_or_not():
    """COST-5: an outage of the cheap Supply does not raise what the others may cost."""
    inputs = market(
        offer("a/ill", price="4.00", health=OPEN),
        offer("b/unfit", price="1.00", capabilities={"inputs": {}}),
        offer("c/unpriced", price=None),
        offer("d/dear", price="6.10"),
        offer("e/fallback", "fallback", "1.00"),
        given=FULL_INPUT,
    )
    decision = select(inputs)
    assert decision.baseline == Money("CNY", Decimal("4.00"))
    fate = fate_of(decision, "d/dear")
    assert (fate.step, fate.reason) == ("SEL-11", "stable_cost_multiplier_limit")
    assert fate.figures == "6.10 > baseline 4.00 x 1.5"


@pytest.mark.parametrize("admin", [Admin.DRAINING, Admin.DISABLED])
def test_what_the_operator_took_out_is_no_price_of_the_market(admin):
    """COST-5: a Supply out of use does not hold the others down."""
    decision = select(market(offer("a/out", price="1.00", admin=admin), offer("b/x", price="5.00")))
    assert (decision.chosen, decision.baseline) == ("b/x", Money("CNY", Decimal("5.00")))


@pytest.mark.parametrize("admin", [Admin.DRAINING, Admin.DISABLED])
def test_taking_the_only_exact_supply_out_frees_no_fallback_of_its_limit(admin):
    """COST-5, COST-6: its price is the only one of the market, so it still says what a fallback may cost."""
    out = offer("a/out", price="5.00", admin=admin)
    assert select(market(out, offer("b/x", "fallback", "10.00"))).chosen == "b/x"
    decision = select(market(out, offer("b/x", "fallback", "10.01")))
    assert (decision.chosen, decision.baseline) == ("", Money("CNY", Decimal("5.00")))
    assert fates(decision)["b/x"] == ("SEL-11", "fallback_cost_multiplier_limit")


@pytest.mark.parametrize(
    "tier, price, order, reason",
    [
        ("exact", "7.50", "stable_first", None),
        ("exact", "7.51", "stable_first", "stable_cost_multiplier_limit"),
        ("exact", "7.51", "cost_first", None),
        ("fallback", "10.00", "stable_first", None),
        ("fallback", "10.01", "stable_first", "fallback_cost_multiplier_limit"),
        ("fallback", "10.01", "cost_first", "fallback_cost_multiplier_limit"),
        ("degraded", "10.01", "manual_priority", "fallback_cost_multiplier_limit"),
        ("exact", "50.01", "cost_first", "absolute_cost_limit"),
    ],
)
def test_guardrails_by_tier_and_order(tier, price, order, reason):
    """SEL-11, COST-6: which multiplier holds where, limits included."""
    inputs = market(offer("a/base", price="5.00", health=OPEN), offer("b/x", tier, price), policy_order=order)
    assert fates(select(inputs)).get("b/x") == (None if reason is None else ("SEL-11", reason))


def test_what_was_spent_counts_towards_the_absolute_limit():
    """COST-6: spent on this Task + quote <= absolute_cost_limit."""
    spent = Money("CNY", Decimal("46.00"))
    decision = select(market(offer("a/x", price="5.00"), spent=spent))
    assert fate_of(decision, "a/x").figures == "spent 46.00 + 5.00 > 50.00"
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "cost_limit_exceeded")
    assert select(market(offer("a/x", price="4.00"), spent=spent)).chosen == "a/x"


def test_a_supply_that_may_not_serve_is_not_too_dear():
    """SEL-6, COST-7: what refuses real people is no price that a caller could pay; the one that could serve is out."""
    given = {"prompt": "a portrait", "duration_s": 5, "real_person": True}
    dear = offer("a/dear", price="60.00", real_person=RealPerson.FORBIDDEN)
    decision = select(market(dear, offer("b/out", price="5.00", admin=Admin.DISABLED), given=given))
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "supply_unavailable")


def test_without_a_baseline_the_absolute_limit_alone_holds():
    """COST-5, COST-6: there is nothing to multiply when no exact Supply has a price."""
    decision = select(market(offer("a/x", price=None), offer("b/y", "fallback", "49.00")))
    assert (decision.chosen, decision.baseline) == ("b/y", None)


def test_an_emergency_admits_what_is_over_with_an_alert_and_remembers_what_was_spent():
    """COST-7: only with emergency_availability, only when nobody within limits serves, never past its own limit."""
    offers = offer("a/x", health=OPEN), offer("b/y", "fallback", "60.00")
    assert select(market(*offers)).verdict is Verdict.WAIT
    decision = select(market(*offers, policy_emergency_availability=True))
    assert (decision.chosen, decision.tier) == ("b/y", "fallback")
    assert [(alert.kind, alert.severity) for alert in decision.alerts][-1] == ("emergency_override_used", "high")
    spent = Money("CNY", Decimal("45.00"))
    decision = select(market(*offers, policy_emergency_availability=True, spent=spent))
    assert decision.verdict is Verdict.WAIT
    assert fate_of(decision, "b/y").figures.endswith("emergency: spent 45.00 + 60.00 > 100.00")


def test_an_emergency_is_not_declared_for_fullness():
    """COST-7, TIER-1a: a full Supply within limits is waited for."""
    offers = offer("a/x", capacity=FULL), offer("b/y", price="60.00")
    assert select(market(*offers, policy_emergency_availability=True)).verdict is Verdict.WAIT


def test_every_figure_of_cost_is_kept():
    """COST-8: quotes, baseline, spent, limits and the reason of the choice are in the record."""
    inputs = market(offer("a/x"), offer("b/y", price="7.00"), spent=Money("CNY", Decimal("3.00")))
    saved = record(inputs, select(inputs)).decode()
    for part in ('"baseline":{"amount":"5.00"', '"spent":{"amount":"3.00"', '"absolute_cost_limit":"50.00"', '"7.00"'):
        assert part in saved
    assert "baseline 5.00 CNY, spent 3.00: a/x (exact, 5.00 CNY" in saved


def test_the_four_steps_of_the_explanation():
    """SEL-24: capability with the real-person step, health and capacity, policy, at most one switch."""
    inputs = market(
        offer("a/x", capacity=busy(1, 5)),
        offer("b/y", health=OPEN),
        offer("c/z", real_person=RealPerson.FORBIDDEN),
        offer("d/w", real_person=RealPerson.RESTRICTED),
        offer("e/v", capabilities={"inputs": {}}),
        offer("f/u", "fallback"),
        given={**FULL_INPUT, "real_person": True},
    )
    assert select(inputs).steps == (
        "Hard capability match: 3 of 6 supplies fit (1 capability, 1 real_person_forbidden); not looked at "
        "(1 tier_not_reached). Real person: 1 refuse it, 1 restricted held back while an allowing supply exists.",
        "Health and capacity: 2 of 3 are free (1 circuit_open).",
        "Policy stable (stable_first), baseline 5.00 CNY, spent 0.00: a/x (exact, 5.00 CNY, healthy, 4 free) is first "
        "of 1.",
        "At most 1 switch of supply: this is attempt 1 of 2.",
    )


def test_image_pages_do_not_show_the_real_person_step():
    """SEL-24: only video adds it to its first part."""
    image = {"kind": Kind.IMAGE, "capabilities": {}, "prices": ()}
    steps = select(market(offer("a/x", **image), model_kind=Kind.IMAGE)).steps
    assert "eal person" not in " ".join(steps)
    assert "Real person: not shown" in select(market(offer("a/x"))).steps[0]


def test_the_fourth_step_tells_of_the_switch():
    """SEL-24: after a failed Attempt the explanation names it."""
    steps = select(market(offer("a/x"), offer("b/y"), tried=("a/x",))).steps
    assert steps[3] == "At most 1 switch of supply: this is attempt 2 of 2, after a/x."


def test_the_fourth_step_of_a_call_counts_what_failed():
    """SEL-24, SYN-3: a call has its own allowance of tries, and one that found no room is none of them; what was
    decided before that was kept reads as it did."""
    inputs = market(offer("a/x"), offer("b/y"), tried=("a/x", "c/z", "a/x"))
    words = "A call may switch supply until 3 of its tries have failed, want of room not counted"
    assert select(replace(inputs, call_tries=3)).steps[3] == f"{words}: 3 missed so far, at a/x, c/z, a/x."
    assert select(replace(inputs, call_tries=3, tried=())).steps[3] == f"{words}: none has missed yet."
    assert "this is attempt 4 of 2" in select(inputs).steps[3]


@pytest.mark.parametrize(
    "inputs",
    [
        market(*FIELD, offer("g/d", "degraded"), given=FULL_INPUT, spent=Money("CNY", Decimal("1.50"))),
        market(offer("a/x", health=OPEN), offer("b/y", "fallback", capacity=FULL), tried=("a/x",)),
        market(offer("a/x", health=HealthView(state="disabled")), offer("c/z", "degraded"), given=FULL_INPUT),
        market(offer("a/x"), permitted=False),
        market(offer("a/x", price=None), given={"prompt": "p", "duration_s": 5.0, "seed": 1}),
    ],
)
def test_a_record_replays_to_the_same_bytes(inputs):
    """SEL-22: what was saved, fed back, gives the same decision byte for byte."""
    decision = select(inputs)
    saved = record(inputs, decision)
    assert canonical_json(replay(saved)) == canonical_json(decision)
    assert replays(saved)
    assert record(recorded_inputs(saved), replay(saved)) == saved
    assert canonical_json(recorded_decision(saved)) == canonical_json(decision)


def test_ranks_are_consecutive():
    """SEL-16: 1 for the chosen, then 2, 3 and so on."""
    ranks = [fate.rank for fate in select(market(*FIELD)).fates if fate.rank]
    assert all(later == earlier + 1 for earlier, later in pairwise(ranks))
    assert ranks[0] == 1

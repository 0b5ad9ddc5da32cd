"""What holds for every market: generated inputs against the laws of selection."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from libs.kernel.canonical import canonical_json
from libs.kernel.money import Money
from services.routing.domain.catalog import Admin, Order, RealPerson
from services.routing.domain.decision import CapacityView, Decision, HealthView, Inputs, Verdict
from services.routing.domain.ordering import Standing, order_key
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record, replays
from tests.unit.routing.selection_inputs import FULL_INPUT, NOW, market, offer

STATES = ("healthy", "degraded", "circuit_open", "probing", "recovering", "disabled")
PRICES = ("0.00", "1.00", "5.00", "5.01", "7.50", "9.99", "45.00", "60.00", None)


@st.composite
def healths(draw) -> HealthView:
    """Any view of health, its limit as the ladder would have it."""
    state = draw(st.sampled_from(STATES))
    limits = {"circuit_open": st.just(0), "probing": st.just(1), "recovering": st.integers(1, 3)}
    return HealthView(
        state=state,
        epoch=draw(st.integers(0, 3)),
        limit=draw(limits.get(state, st.none())),
        success_rate=draw(st.none() | st.floats(0, 1)),
        samples=draw(st.integers(0, 60)),
        cooldown_until=draw(st.none() | st.integers(0, 90).map(lambda s: NOW + timedelta(seconds=s))),
    )


@st.composite
def capacities(draw) -> CapacityView:
    """Any view of capacity."""
    used = draw(st.integers(0, 6))
    return CapacityView(
        configured=draw(st.integers(0, 5)),
        in_use=used,
        in_use_current_epoch=draw(st.integers(0, used)),
        rpm=draw(st.sampled_from([0, 0, 10])),
        rpm_used=draw(st.integers(0, 12)),
        adaptive=draw(st.none() | st.integers(0, 5)),
        frozen_until=draw(st.sampled_from([None, None, NOW - timedelta(seconds=1), NOW + timedelta(seconds=30)])),
    )


@st.composite
def offers(draw, number: int):
    """Any offer; its id is its place in the list."""
    return offer(
        f"{draw(st.sampled_from('abc'))}/{number:02}",
        draw(st.sampled_from(["exact", "fallback", "degraded"])),
        draw(st.sampled_from(PRICES)),
        priority=draw(st.integers(0, 3)),
        health=draw(healths()),
        capacity=draw(capacities()),
        admin=draw(st.sampled_from([Admin.ENABLED, Admin.ENABLED, Admin.ENABLED, *Admin])),
        real_person=draw(st.sampled_from(list(RealPerson))),
        charges_on_failure=draw(st.booleans()),
    )


@st.composite
def markets(draw) -> Inputs:
    """Any market of up to eight Supplies over three Channels."""
    bound = [draw(offers(number)) for number in range(draw(st.integers(0, 8)))]
    names = [item["supply"].id for item in bound]
    inputs = market(
        *bound,
        given={**draw(st.sampled_from([{"prompt": "p"}, dict(FULL_INPUT)])), "real_person": draw(st.booleans())},
        policy_order=draw(st.sampled_from(list(Order))),
        policy_when_full=draw(st.sampled_from(["", "wait", "spill"])),
        policy_emergency_availability=draw(st.booleans()),
        request_degradation=draw(st.sampled_from(["", "strict", "best_effort"])),
        spent=Money("CNY", draw(st.sampled_from([Decimal(0), Decimal("44.00")]))),
        tried=tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2))) if names else (),
    )
    channels = {item["supply"].channel for item in bound}
    return replace(
        inputs,
        channel_health={name: draw(healths()) for name in sorted(channels)},
        channel_capacity={name: draw(capacities()) for name in sorted(channels)},
    )


@given(markets())
def test_every_bound_supply_has_exactly_one_fate(inputs: Inputs):
    """SEL-16: none is forgotten, none named twice; a dropped one has step and reason, a ranked one neither."""
    decision = select(inputs)
    assert sorted(fate.supply for fate in decision.fates) == sorted(b.supply for b in inputs.model.bindings)
    for fate in decision.fates:
        assert (fate.fate == "dropped") == bool(fate.step) == bool(fate.reason) == (fate.rank == 0)
        assert (fate.fate == "chosen") == (fate.supply == decision.chosen) == (fate.rank == 1)


@given(markets(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(inputs: Inputs, rng):
    """SEL-19: shuffled bindings and mappings give the same decision, byte for byte."""
    bindings = list(inputs.model.bindings)
    rng.shuffle(bindings)
    names = list(inputs.supplies)
    rng.shuffle(names)
    shuffled = replace(
        inputs,
        model=replace(inputs.model, bindings=tuple(bindings)),
        supplies={name: inputs.supplies[name] for name in names},
        quotes={name: inputs.quotes[name] for name in reversed(names)},
    )
    assert canonical_json(select(shuffled)) == canonical_json(select(inputs))


@given(markets())
def test_the_chosen_supply_may_and_can_take_it(inputs: Inputs):
    """SEL-4, SEL-8, SEL-9, SEL-10: never disabled, never behind an open circuit, never full, never unpriced."""
    decision = select(inputs)
    if decision.verdict is not Verdict.CHOSEN:
        return
    supply = inputs.supplies[decision.chosen]
    assert supply.admin is Admin.ENABLED
    for health, capacity in (
        (inputs.supply_health[supply.id], inputs.supply_capacity[supply.id]),
        (inputs.channel_health[supply.channel], inputs.channel_capacity[supply.channel]),
    ):
        assert health.state not in ("circuit_open", "disabled")
        assert health.limit is None or capacity.in_use_current_epoch < health.limit
        assert not capacity.configured or capacity.in_use < capacity.configured
        assert not capacity.rpm or capacity.rpm_used < capacity.rpm
    assert inputs.quotes[supply.id].amount is not None


@given(markets())
def test_nothing_is_ranked_across_tiers_or_layers(inputs: Inputs):
    """TIER-1, SEL-7, SEL-21: all that are ranked share the tier and the real-person layer of the choice."""
    decision = select(inputs)
    ranked = [fate for fate in decision.fates if fate.rank]
    assert len({fate.tier for fate in ranked}) <= 1
    if inputs.request.input["real_person"]:
        assert len({inputs.supplies[fate.supply].real_person for fate in ranked}) <= 1


@given(markets())
def test_money_limits_hold_in_every_case(inputs: Inputs):
    """COST-6, COST-7: within the absolute limit, or within the emergency limit and then with an alert."""
    decision = select(inputs)
    if decision.verdict is not Verdict.CHOSEN:
        return
    total = inputs.spent.amount + (inputs.quotes[decision.chosen].amount or Decimal(0))
    if "emergency_override_used" in {alert.kind for alert in decision.alerts}:
        assert inputs.policy.emergency_availability
        assert total <= inputs.policy.emergency_cost_limit
    else:
        assert total <= inputs.policy.absolute_cost_limit


@given(markets())
def test_strict_and_full_never_degrade(inputs: Inputs):
    """TIER-1a, TIER-2: never degraded: a strict request, nor one for which somebody able and within limits is full."""
    decision = select(inputs)
    if decision.tier != "degraded" or decision.verdict is not Verdict.CHOSEN:
        return
    assert inputs.request.degradation != "strict"
    for fate in decision.fates:
        if fate.step == "SEL-9" and fate.tier != "degraded":
            assert fate.quote is None or not within_limits(inputs, decision, fate.quote.amount)


def within_limits(inputs: Inputs, decision: Decision, quote: Decimal) -> bool:
    """Whether a quote is surely admitted, by the narrowest reading of every limit."""
    cheap = decision.baseline is None or quote <= decision.baseline.amount
    return cheap and inputs.spent.amount + quote <= inputs.policy.absolute_cost_limit


@given(markets())
def test_verdicts_say_what_they_must(inputs: Inputs):
    """SEL-12, TIER-1a, ATT-10: a choice has an input, a wait its one reason, a failure its code."""
    decision = select(inputs)
    assert (decision.verdict is Verdict.CHOSEN) == bool(decision.chosen) == bool(decision.input)
    assert (decision.verdict is Verdict.WAIT) == bool(decision.waiting_reason)
    assert (decision.verdict is Verdict.FAIL) == bool(decision.failure_code)
    assert all(decision.steps)


@given(markets())
def test_every_record_replays(inputs: Inputs):
    """SEL-22: byte for byte, whatever the market."""
    assert replays(record(inputs, select(inputs)))


standings = st.builds(
    Standing,
    supply=st.text("ab", min_size=1, max_size=2),
    health_rank=st.integers(0, 3),
    success_percent=st.integers(88, 91),
    expected_cost=st.sampled_from([Decimal("1"), Decimal("1.00"), Decimal("2.5")]),
    free_slots=st.none() | st.integers(0, 2),
    priority=st.integers(0, 2),
)


@given(st.sampled_from(list(Order)), st.lists(standings, min_size=3, max_size=3))
def test_the_comparison_is_a_total_order(order: Order, three: list[Standing]):
    """SEL-19: total, antisymmetric and transitive for every three candidates."""
    a, b, c = (order_key(order, standing) for standing in three)
    assert (a <= b) or (b <= a)
    assert not (a <= b and b <= a) or a == b
    assert not (a <= b and b <= c) or a <= c
    assert a != b or three[0].supply == three[1].supply

"""The steps of a selection, one rule a test: who is dropped where, and with which figures."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from libs.kernel.money import Money
from services.routing.domain.availability import clock_time
from services.routing.domain.calls import ends
from services.routing.domain.catalog import Admin, Kind, Price, RealPerson
from services.routing.domain.decision import CapacityView, HealthView, QuoteView, Verdict
from services.routing.domain.selection import select
from tests.unit.routing.selection_inputs import (
    FULL,
    FULL_INPUT,
    FULL_SHAPE,
    NOW,
    OPEN,
    busy,
    fate_of,
    fates,
    market,
    materials,
    offer,
    ranking,
)


def test_a_tenant_without_permission_is_refused_before_anything_is_looked_at():
    """SEL-1: whoever may not use the model is refused, and every Supply's fate says so."""
    decision = select(market(offer("a/x"), offer("b/y"), permitted=False))
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "forbidden")
    assert fates(decision) == {"a/x": ("SEL-1", "forbidden"), "b/y": ("SEL-1", "forbidden")}


def test_a_model_that_was_unpublished_serves_no_further_attempt():
    """SEL-1: a model closed after the Task came in starts no new Attempt."""
    decision = select(market(offer("a/x"), model_published=False))
    assert decision.failure_code == "model_not_published"


def test_a_request_beyond_the_models_limits_is_refused_with_the_field():
    """SEL-2: limits of the Public Model hold whatever a Supply could do."""
    decision = select(
        market(offer("a/x"), model_limits={"duration_s": {"min": 4, "max": 15}}, given={"duration_s": 20})
    )
    assert decision.failure_code == "validation_failed"
    assert "/input/duration_s needs 20 s, admits 4-15 s" in decision.failure_message
    assert fates(decision) == {"a/x": ("SEL-2", "model_limits")}


def test_exact_supplies_are_taken_and_the_others_not_reached():
    """SEL-3, TIER-1, SEL-15a: while an exact Supply serves, no other tier is looked at."""
    decision = select(market(offer("a/x", price="9.00"), offer("b/y", "fallback", "1.00"), offer("c/z", "degraded")))
    assert (decision.chosen, decision.tier) == ("a/x", "exact")
    assert fates(decision) == {"b/y": ("TIER-1", "tier_not_reached"), "c/z": ("TIER-1", "tier_not_reached")}


@pytest.mark.parametrize("admin", [Admin.DRAINING, Admin.DISABLED])
@pytest.mark.parametrize("level", ["channel", "supply"])
def test_what_the_operator_took_out_is_dropped(admin: Admin, level: str):
    """SEL-4, CAT-5: a draining or disabled Channel or Supply gets no new Attempt, and the figures name which it was."""
    inputs = market(offer("a/x", price="4.00"), offer("b/y"))
    if level == "supply":
        inputs = replace(inputs, supplies=inputs.supplies | {"a/x": replace(inputs.supplies["a/x"], admin=admin)})
    else:
        inputs = replace(inputs, channels=inputs.channels | {"a": replace(inputs.channels["a"], admin=admin)})
    decision = select(inputs)
    fate = fate_of(decision, "a/x")
    assert decision.chosen == "b/y"
    assert (fate.step, fate.reason) == ("SEL-4", str(admin))
    assert fate.figures == f"{level} {'a/x' if level == 'supply' else 'a'} is {admin}"


@pytest.mark.parametrize(
    "capabilities, given, figures",
    [
        ({"inputs": {"reference_images": 9}}, {"reference_videos": materials(3)}, "needs 3 videos, admits 0"),
        ({"inputs": {"reference_images": 9}}, {"reference_images": materials(10)}, "needs 10 images, admits 9"),
        ({"resolutions": ["480p", "720p"]}, {"resolution": "1080p"}, "needs resolution 1080p, admits 480p, 720p"),
        ({"ratios": ["16:9"]}, {"ratio": "1:1"}, "needs ratio 1:1, admits 16:9"),
        ({"duration_s": {"min": 4, "max": 10}}, {"duration_s": 12}, "needs 12 s, admits 4-10 s"),
        ({"features": ["seed"]}, {"first_frame": {"url": "https://a/b"}}, "needs feature first_frame, admits seed"),
        ({"features": ["seed"]}, {"audio": False}, "needs feature audio, admits seed"),
        ({"features": []}, {"seed": 7}, "needs feature seed, admits none"),
    ],
)
def test_a_supply_that_cannot_is_dropped_with_the_figures_that_decided(capabilities, given, figures):
    """SEL-5, SEL-16: a hard need that is not met drops the Supply, and the figures say need and limit."""
    inputs = market(offer("a/x", capabilities=capabilities), offer("b/y"), given={"prompt": "p", **given})
    fate = fate_of(select(inputs), "a/x")
    assert (fate.step, fate.reason, fate.figures) == ("SEL-5", "capability", figures)


def test_a_capability_that_is_not_declared_limits_nothing():
    """SEL-5: absent means no limit."""
    assert select(market(offer("a/x", capabilities={}), given=FULL_INPUT)).chosen == "a/x"


def test_a_video_request_means_per_second_and_the_mode_is_a_hard_filter():
    """COST-1, SEL-5: per_request must be asked for, and a Supply that is not sold that way is dropped."""
    prices = {
        "per-second": Price("per-second", 1, 1, "CNY", "per_second"),
        "clip": Price("clip", 1, 1, "CNY", "per_request"),
    }
    offers = offer("a/x", price="4.00", prices=("clip",)), offer("b/y")
    decision = select(market(*offers, prices=prices))
    assert decision.chosen == "b/y"
    assert fates(decision)["a/x"] == ("SEL-5", "billing_mode")
    assert fate_of(decision, "a/x").figures == "needs per_second, offers per_request"
    decision = select(market(*offers, prices=prices, request_billing_mode="per_request"))
    assert (decision.chosen, fates(decision)["b/y"]) == ("a/x", ("SEL-5", "billing_mode"))


def test_a_request_with_real_people_keeps_supplies_that_admit_them():
    """SEL-6: forbidden Supplies are dropped; without real people they serve."""
    offers = offer("a/x", price="4.00", real_person=RealPerson.FORBIDDEN), offer("b/y")
    decision = select(market(*offers, given={"prompt": "p", "real_person": True}))
    assert (decision.chosen, fates(decision)["a/x"][0]) == ("b/y", "SEL-6")
    assert select(market(*offers)).chosen == "a/x"


def test_the_real_person_step_is_for_video_only():
    """SEL-6: an image request has no such step, whatever its input says."""
    inputs = market(
        offer("a/x", kind=Kind.IMAGE, capabilities={}, prices=(), real_person=RealPerson.FORBIDDEN),
        given={"prompt": "p", "real_person": True},
        model_kind=Kind.IMAGE,
    )
    assert select(inputs).chosen == "a/x"


def test_no_supply_that_admits_real_people_is_the_callers_fault():
    """SEL-6: when every fitting Supply refuses real people, the Task fails real_person_rejected."""
    inputs = market(offer("a/x", real_person=RealPerson.FORBIDDEN), given={"prompt": "p", "real_person": True})
    assert select(inputs).failure_code == "real_person_rejected"


def test_restricted_supplies_are_held_back_while_an_allowing_one_exists():
    """SEL-7: a cheaper restricted Supply does not enter the layer of an allowing one."""
    offers = offer("a/x", price="4.00", real_person=RealPerson.RESTRICTED), offer("b/y", price="5.50")
    decision = select(market(*offers, given={"prompt": "p", "real_person": True}))
    assert (decision.chosen, fates(decision)) == ("b/y", {"a/x": ("SEL-7", "restricted")})
    assert ranking(select(market(*offers))) == ["a/x", "b/y"]


def test_a_restricted_supply_serves_when_no_allowing_one_can():
    """SEL-7: the second layer is used when the first has no survivor."""
    offers = offer("a/x", real_person=RealPerson.RESTRICTED), offer("b/y", health=OPEN)
    assert select(market(*offers, given={"prompt": "p", "real_person": True})).chosen == "a/x"


def test_priority_crosses_neither_tier_nor_real_person_layer():
    """SEL-21: the highest priority of a lower tier or layer stays behind."""
    offers = (
        offer("a/x", priority=1),
        offer("b/y", priority=5, real_person=RealPerson.RESTRICTED),
        offer("c/z", "fallback", priority=9),
    )
    inputs = market(*offers, given={"prompt": "p", "real_person": True}, policy_order="manual_priority")
    assert ranking(select(inputs)) == ["a/x"]


@pytest.mark.parametrize(
    "health, reason",
    [
        (OPEN, "circuit_open"),
        (HealthView(state="disabled"), "disabled"),
        (HealthView(state="probing", limit=1), "probe_busy"),
    ],
)
@pytest.mark.parametrize("level", ["channel_health", "supply_health"])
def test_health_of_channel_and_supply_drops(health: HealthView, reason: str, level: str):
    """SEL-8, SEL-15a: an open circuit, a disabled object and a taken probe slot drop, each with its reason."""
    name = "a" if level == "channel_health" else "a/x"
    probed = CapacityView(in_use=1, in_use_current_epoch=1)
    inputs = market(
        offer("a/x", price="4.00"),
        offer("b/y"),
        **{level: {name: health}, "channel_capacity": {"a": probed}, "supply_capacity": {"a/x": probed}},
    )
    decision = select(inputs)
    assert (decision.chosen, fates(decision)["a/x"]) == ("b/y", ("SEL-8", reason))


def test_old_work_does_not_block_the_probe():
    """SEL-8, CAP-4a: older leases do not take the probe slot, but do count against the configured limit."""
    probing = HealthView(state="probing", epoch=2, limit=1)
    capacity = CapacityView(configured=5, in_use=4, in_use_current_epoch=0)
    assert select(market(offer("a/x", health=probing, capacity=capacity))).chosen == "a/x"
    full = capacity._replace(in_use=5)
    assert fates(select(market(offer("a/x", health=probing, capacity=full)))) == {"a/x": ("SEL-9", "concurrency")}


def test_a_recovering_supply_has_only_the_slots_that_health_allows():
    """SEL-9, CAP-4: effective slots are the smaller of what is configured and what health allows."""
    recovering = HealthView(state="recovering", epoch=2, limit=2)
    one_left = CapacityView(configured=8, in_use=6, in_use_current_epoch=1)
    assert fate_of(select(market(offer("a/x", health=recovering, capacity=one_left))), "a/x").free_slots == 1
    none_left = one_left._replace(in_use_current_epoch=2)
    fate = fate_of(select(market(offer("a/x", health=recovering, capacity=none_left))), "a/x")
    assert (fate.step, fate.reason, fate.figures) == ("SEL-9", "recovering", "supply a/x recovering 2 of 2")


@pytest.mark.parametrize(
    "view, figures",
    [
        (FULL, "supply a/x concurrency 5 of 5"),
        (CapacityView(rpm=60, rpm_used=60), "supply a/x requests 60 of 60"),
        (CapacityView(tpm=1000, tpm_used=1200), "supply a/x tokens 1200 of 1000"),
        (
            CapacityView(configured=5, in_use=2, adaptive=2),
            "supply a/x adaptive 2 of 2: its provider was congested, slots come back with successes",
        ),
        (
            CapacityView(configured=5, frozen_until=NOW + timedelta(seconds=60)),
            f"supply a/x frozen until {clock_time(NOW + timedelta(seconds=60))}: its provider asked not to be asked"
            " before",
        ),
    ],
)
def test_a_full_supply_is_dropped_with_its_gate(view: CapacityView, figures: str):
    """SEL-9, CAP-4: effective slots minus leases, a freeze, and the rate windows."""
    decision = select(market(offer("a/x", capacity=view), offer("b/y")))
    assert (decision.chosen, fate_of(decision, "a/x").step) == ("b/y", "SEL-9")
    assert fate_of(decision, "a/x").figures == figures


def test_the_adaptive_limit_leaves_fewer_slots_and_a_freeze_that_is_over_none_less():
    """CAP-4: free slots are the least of configured, health and adaptive, minus the leases."""
    view = CapacityView(configured=8, in_use=2, adaptive=5, frozen_until=NOW)
    assert fate_of(select(market(offer("a/x", capacity=view))), "a/x").free_slots == 3


def test_a_frozen_supply_is_looked_at_again_when_its_provider_said():
    """CAP-7, ATT-10: a Task that only waits for a freeze knows the time at which another look is useful."""
    until = NOW + timedelta(seconds=60)
    decision = select(market(offer("a/x", capacity=CapacityView(frozen_until=until))))
    assert (decision.verdict, decision.retry_at) == (Verdict.WAIT, until)
    assert decision.waiting_reason.startswith("capacity: supply a/x frozen until ")


@pytest.mark.parametrize("gates", [{"rpm": 3, "rpm_used": 3}, {"tpm": 100, "tpm_used": 120}])
def test_a_full_window_tells_when_it_has_room(gates: dict[str, int]):
    """CAP-1, SYN-2, EDG-3: a caller that a full minute turned away is told when the first of it has left."""
    room = NOW + timedelta(seconds=42)
    decision = select(market(offer("a/x", capacity=CapacityView(**gates, room_at=room))))
    assert (decision.verdict, decision.retry_at) == (Verdict.WAIT, room)
    fault = ends.waiting(decision, {}, NOW)
    assert (fault.code, fault.retry_after_ms) == ("quota_full", 42_000)


def test_a_slot_may_be_free_before_a_window_has_room():
    """SYN-2, EDG-3: where somebody else is full of work that may end soon, nobody is sent away for a minute."""
    minute = CapacityView(rpm=3, rpm_used=3, room_at=NOW + timedelta(seconds=42))
    decision = select(market(offer("a/x", capacity=minute), offer("b/y", capacity=FULL)))
    assert ends.waiting(decision, {}, NOW).retry_after_ms == ends.USUAL_PAUSE_MS


def test_a_full_channel_holds_for_all_its_supplies():
    """SEL-9, CAP-1: a Channel's gate drops what is sold over it, and the figures name the Channel."""
    decision = select(market(offer("a/x"), offer("a/y"), offer("b/z"), channel_capacity={"a": busy(9, 9)}))
    assert decision.chosen == "b/z"
    assert fates(decision) == {"a/x": ("SEL-9", "concurrency"), "a/y": ("SEL-9", "concurrency")}
    assert fate_of(decision, "a/x").figures == "channel a concurrency 9 of 9"
    assert fate_of(decision, "a/x").free_slots == 0


def test_the_gate_of_the_kind_holds_for_every_supply():
    """SEL-9, CAP-1: the global gate of a kind drops them all."""
    decision = select(market(offer("a/x"), offer("b/y"), global_capacity=busy(16, 16)))
    assert {fate.figures for fate in decision.fates} == {"all video concurrency 16 of 16"}


def test_a_supply_without_price_is_dropped_and_never_free():
    """SEL-10, COST-4: unpriced is a reason to drop, with what the quote said."""
    decision = select(market(offer("a/x", price=None), offer("b/y")))
    assert (decision.chosen, fates(decision)["a/x"]) == ("b/y", ("SEL-10", "unpriced"))
    assert fate_of(decision, "a/x").quote is None
    assert select(market(offer("a/x", price=None))).verdict is Verdict.FAIL


def test_every_bound_supply_has_its_fate_with_figures():
    """SEL-16: chosen, ranked and dropped Supplies are all there, with every figure."""
    health = HealthView(success_rate=0.97, samples=50)
    inputs = market(
        offer("a/x", priority=3, health=health, capacity=busy(2, 5)),
        offer("b/y", health=HealthView(state="degraded")),
        offer("c/z", health=OPEN),
    )
    decision = select(inputs)
    chosen = fate_of(decision, "a/x")
    assert (chosen.fate, chosen.rank, chosen.health, chosen.success_rate) == ("chosen", 1, "healthy", 0.97)
    assert (chosen.quote, chosen.free_slots, chosen.priority) == (Money("CNY", Decimal("5.00")), 3, 3)
    assert (fate_of(decision, "b/y").fate, fate_of(decision, "b/y").rank) == ("ranked", 2)
    assert fate_of(decision, "c/z").figures == "supply c/z circuit_open until 2026-11-29T12:01:00Z"


def test_an_untried_supply_is_preferred_and_the_tried_one_comes_back_when_nothing_else_can():
    """SEL-16, ATT-1, ATT-3a: the second Attempt goes elsewhere; with nothing else, to the same Supply again."""
    inputs = market(offer("a/x", price="4.00"), offer("b/y"), tried=("a/x",))
    decision = select(inputs)
    assert (decision.chosen, fates(decision)["a/x"]) == ("b/y", ("ATT-1", "tried"))
    assert select(market(offer("a/x"), offer("b/y", health=OPEN), tried=("a/x",))).chosen == "a/x"
    assert select(market(offer("a/x"), tried=("a/x",))).chosen == "a/x"


def test_the_same_supply_is_not_tried_before_its_retry_after():
    """ATT-3a: until the Retry-After is over the Task waits, and the decision says until when."""
    later = NOW.replace(second=30)
    decision = select(market(offer("a/x"), tried=("a/x",), not_before={"a/x": later}))
    assert (decision.verdict, decision.retry_at) == (Verdict.WAIT, later)
    assert decision.waiting_reason == "retry: supply a/x not before 2026-11-29T12:00:30Z"
    assert select(market(offer("a/x"), tried=("a/x",), not_before={"a/x": NOW})).chosen == "a/x"


def test_a_name_that_is_not_configured_surfaces_as_such():
    """CAT-6, SEL-16: a binding to a Supply that is not there is an assembly fault, not an outage."""
    inputs = market(offer("a/x"))
    decision = select(replace(inputs, supplies={}))
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "source_not_configured")
    assert fates(decision) == {"a/x": ("CAT-6", "source_not_configured")}


def test_the_input_that_is_sent_says_the_duration_aloud():
    """SEL-2, COST-2: a video without duration is quoted and sent with the default, moved into the model's limits."""
    assert select(market(offer("a/x"), given={"prompt": "p"})).input["duration_s"] == 5
    limits = {"duration_s": {"min": 6, "max": 10}}
    assert select(market(offer("a/x"), given={"prompt": "p"}, model_limits=limits)).input["duration_s"] == 6


def test_a_quote_that_is_not_there_counts_as_unpriced():
    """COST-4: a Supply that the quotes do not mention is not free."""
    inputs = market(offer("a/x"))
    assert fates(select(replace(inputs, quotes={}))) == {"a/x": ("SEL-10", "unpriced")}
    assert select(replace(inputs, quotes={"a/x": QuoteView(amount=Decimal(0))})).chosen == "a/x"


def test_capabilities_that_fit_the_whole_request_pass():
    """SEL-5: nine images, three videos and three audios fit a 933 Supply."""
    assert select(market(offer("a/x", capabilities=FULL_SHAPE), given=FULL_INPUT)).chosen == "a/x"

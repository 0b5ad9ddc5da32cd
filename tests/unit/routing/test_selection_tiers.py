"""Tiers, fullness, degradation and alerts."""

from dataclasses import replace
from decimal import Decimal

import pytest

from libs.kernel.money import Money
from services.routing.domain.catalog import Admin, Kind
from services.routing.domain.decision import HealthView, Verdict
from services.routing.domain.degradation import degrade
from services.routing.domain.selection import select
from tests.unit.routing.selection_inputs import (
    FULL,
    FULL_INPUT,
    NOW,
    OPEN,
    RULE,
    fate_of,
    fates,
    market,
    materials,
    offer,
)

OUT = HealthView(state="disabled")


def test_fallback_serves_only_when_no_exact_candidate_survives():
    """TIER-1: an exact Supply lost to health, or to its price, lets the fallback tier serve."""
    assert select(market(offer("a/x", health=OPEN), offer("b/y", "fallback"))).tier == "fallback"
    dear = market(offer("a/x", price="60.00"), offer("b/y", "fallback", "40.00"))
    assert select(dear).chosen == "b/y"


def test_degraded_serves_only_when_exact_and_fallback_are_exhausted():
    """TIER-1: with both out of use the degraded tier serves; with one free it does not."""
    offers = offer("a/x", health=OPEN), offer("c/z", "degraded", "1.00")
    assert select(market(*offers, offer("b/y", "fallback"), given=FULL_INPUT)).tier == "fallback"
    assert select(market(*offers, offer("b/y", "fallback", health=OUT), given=FULL_INPUT)).tier == "degraded"


def test_a_full_exact_tier_waits_by_default_for_video():
    """TIER-1a: full is not unavailable: an asynchronous kind queues for a release though a fallback is free."""
    decision = select(market(offer("a/x", capacity=FULL), offer("b/y", "fallback"), offer("c/z", "degraded")))
    assert (decision.verdict, decision.tier) == (Verdict.WAIT, "exact")
    assert decision.waiting_reason == "capacity: supply a/x concurrency 5 of 5"
    assert fates(decision)["b/y"] == ("TIER-1", "tier_not_reached")
    assert fate_of(decision, "b/y").figures == "exact is full, not unavailable"


def test_spill_lets_the_fallback_tier_serve():
    """TIER-1a: under `spill` the next full-capability tier takes over."""
    inputs = market(offer("a/x", capacity=FULL), offer("b/y", "fallback"), policy_when_full="spill")
    assert select(inputs).chosen == "b/y"


def test_synchronous_kinds_spill_by_default():
    """TIER-1a: an image request does not queue while a fallback is free."""
    image = {"kind": Kind.IMAGE, "capabilities": {}, "prices": ()}
    offers = offer("a/x", capacity=FULL, **image), offer("b/y", "fallback", **image)
    assert select(market(*offers, model_kind=Kind.IMAGE)).chosen == "b/y"
    assert select(market(*offers, model_kind=Kind.IMAGE, policy_when_full="wait")).verdict is Verdict.WAIT


@pytest.mark.parametrize("when_full", ["wait", "spill"])
@pytest.mark.parametrize("exact, fallback", [(FULL, FULL), (FULL, None), (None, FULL)])
def test_fullness_alone_never_degrades(when_full, exact, fallback):
    """TIER-1a: while anybody of full capability is merely full, the request waits; it never degrades."""
    offers = [offer("c/z", "degraded")]
    offers.append(offer("a/x", capacity=exact) if exact else offer("a/x", health=OPEN))
    offers.append(offer("b/y", "fallback", capacity=fallback) if fallback else offer("b/y", "fallback", health=OPEN))
    decision = select(market(*offers, given=FULL_INPUT, policy_when_full=when_full))
    assert decision.verdict is Verdict.WAIT
    assert decision.waiting_reason.startswith("capacity: ")


def test_a_mixed_tier_counts_as_full():
    """TIER-1a: one exact Supply ill and one full: the tier works, it is only full, so `wait` waits."""
    offers = offer("a/x", health=OPEN), offer("b/y", capacity=FULL), offer("c/z", "fallback")
    assert select(market(*offers)).verdict is Verdict.WAIT
    assert select(market(*offers, policy_when_full="spill")).chosen == "c/z"


def test_a_full_supply_that_is_too_dear_is_not_waited_for():
    """TIER-1a: a slot that could not be paid is no reason to wait."""
    inputs = market(offer("a/x", price="60.00", capacity=FULL), offer("b/y", "fallback", "9.00"))
    assert select(inputs).chosen == "b/y"


def test_a_task_waits_while_every_circuit_is_open():
    """TIER-1a: with every circuit open the Task waits, with that reason and the end of the first cooldown."""
    decision = select(market(offer("a/x", health=OPEN), offer("b/y", "fallback", health=OPEN)))
    assert (decision.verdict, decision.retry_at) == (Verdict.WAIT, NOW.replace(minute=1))
    assert decision.waiting_reason == "health: supply a/x circuit_open until 2026-11-29T12:01:00Z"


def test_nothing_that_time_could_cure_fails_at_once():
    """TIER-1a: a model whose Supplies are all disabled does not wait for what will not come by itself."""
    decision = select(market(offer("a/x", admin=Admin.DISABLED), offer("b/y", "fallback", health=OUT)))
    assert (decision.verdict, decision.failure_code) == (Verdict.FAIL, "supply_unavailable")


def test_a_strict_request_never_degrades():
    """TIER-2, SEL-15a: strict waits, or fails, rather than degrade; the policy speaks where nothing is said."""
    offers = offer("a/x", health=OPEN), offer("c/z", "degraded")
    strict = select(market(*offers, given=FULL_INPUT, request_degradation="strict"))
    assert (strict.verdict, fates(strict)["c/z"]) == (Verdict.WAIT, ("TIER-2", "strict"))
    by_policy = market(*offers, given=FULL_INPUT, policy_degradation="strict")
    assert select(by_policy).verdict is Verdict.WAIT
    asked = replace(by_policy, request=replace(by_policy.request, degradation="best_effort"))
    assert select(asked).chosen == "c/z"
    out = market(offer("a/x", health=OUT), offer("c/z", "degraded"), given=FULL_INPUT, request_degradation="strict")
    assert select(out).failure_code == "supply_unavailable"


def test_a_strict_requests_degraded_supplies_say_strict_even_when_exact_serves():
    """TIER-2, SEL-15a: the reason is the request's word, not the tier."""
    decision = select(market(offer("a/x"), offer("c/z", "degraded"), request_degradation="strict"))
    assert (decision.chosen, fates(decision)["c/z"]) == ("a/x", ("TIER-2", "strict"))


def test_933_degrades_to_900_and_says_what_is_lost():
    """TIER-3, TIER-5, TIER-6: nine images stay in order, videos and audios go, and the decision names both profiles."""
    inputs = market(offer("a/x", health=OUT), offer("c/z", "degraded"), given=FULL_INPUT)
    decision = select(inputs)
    assert (decision.chosen, decision.rule) == ("c/z", "r933-900")
    assert decision.input["reference_images"] == FULL_INPUT["reference_images"]
    assert "reference_videos" not in decision.input
    assert "reference_audios" not in decision.input
    assert decision.dropped_inputs == ("reference_videos", "reference_audios")
    assert (decision.requested_profile, decision.actual_profile) == ("933", "900")
    assert len(inputs.request.input["reference_videos"]) == 3, "the request as asked is untouched"


def test_an_exact_choice_is_never_presented_as_degraded():
    """TIER-6: without degradation both profiles are the model's and nothing is named as dropped."""
    decision = select(market(offer("a/x"), given=FULL_INPUT))
    assert (decision.requested_profile, decision.actual_profile) == ("933", "933")
    assert (decision.rule, decision.dropped_inputs) == ("", ())


@pytest.mark.parametrize("changes", [{"verified": False}, {"published": False}])
def test_a_rule_must_be_verified_and_published(changes):
    """TIER-1, TIER-3: an unpublished or unverified rule degrades nothing."""
    inputs = market(offer("a/x", health=OUT), offer("c/z", "degraded"), given=FULL_INPUT)
    decision = select(replace(inputs, rules={RULE.id: replace(RULE, **changes)}))
    assert (decision.chosen, fates(decision)["c/z"]) == ("", ("TIER-3", "rule_not_published"))


def test_a_degraded_candidate_passes_every_check_again():
    """TIER-4: what the transformed request still needs is checked anew, and it fails if it does not fit."""
    small = offer("c/z", "degraded", capabilities={"inputs": {"reference_images": 4}})
    decision = select(market(offer("a/x", health=OUT), small, given=FULL_INPUT))
    assert decision.verdict is Verdict.FAIL
    assert fate_of(decision, "c/z").figures == "needs 9 images, admits 4"
    ill = market(offer("a/x", health=OUT), offer("c/z", "degraded", health=OPEN), given=FULL_INPUT)
    assert fates(select(ill))["c/z"] == ("SEL-8", "circuit_open")
    dear = market(offer("a/x", health=OUT), offer("c/z", "degraded", "11.00"), given=FULL_INPUT)
    assert fates(select(dear))["c/z"] == ("SEL-11", "fallback_cost_multiplier_limit")


def test_the_three_verbs_of_a_rule():
    """TIER-3, TIER-5: drop_inputs, clamp and set on named fields; a list keeps its first items in order."""
    rule = replace(
        RULE,
        drop_inputs=("reference_videos", "reference_audios"),
        clamp={"duration_s": {"max": 10}, "reference_images": {"max": 4}, "seed": {"min": 5}},
        set={"resolution": "720p"},
    )
    given = {"duration_s": 12, "reference_images": materials(6), "seed": 2, "reference_videos": materials(1)}
    degraded = degrade(rule, given)
    assert degraded.input == {
        "duration_s": 10,
        "reference_images": materials(6)[:4],
        "seed": 5,
        "resolution": "720p",
    }
    assert degraded.dropped == ("reference_videos", "reference_images[4:]")


def test_two_alerts_for_lost_capability():
    """TIER-7: every exact Supply unavailable raises one alert, degradation in use the other."""
    decision = select(market(offer("a/x", health=OUT), offer("c/z", "degraded"), given=FULL_INPUT))
    assert [alert.kind for alert in decision.alerts] == ["exact_supply_unavailable", "degradation_in_use"]
    assert {alert.subject for alert in decision.alerts} == {"seedance-2.0-933"}


def test_full_exact_supplies_raise_no_alert():
    """TIER-7, TIER-1a: full is not unavailable, and a request that no exact Supply fits proves no outage."""
    assert select(market(offer("a/x", capacity=FULL))).alerts == ()
    assert select(market(offer("a/x", health=OPEN), offer("b/y", capacity=FULL))).alerts == ()
    small = market(offer("a/x", capabilities={"inputs": {}}), offer("b/y", "fallback"), given=FULL_INPUT)
    assert select(small).alerts == ()
    assert [alert.kind for alert in select(market(offer("a/x", health=OPEN))).alerts] == ["exact_supply_unavailable"]


def test_a_tried_supply_does_not_come_before_a_full_untried_one():
    """TIER-1a, ATT-3a: an untried Supply that is merely full is waited for; the tried one is not tried again."""
    inputs = market(offer("a/x"), offer("b/y", capacity=FULL), tried=("a/x",), spent=Money("CNY", Decimal(5)))
    decision = select(inputs)
    assert decision.verdict is Verdict.WAIT
    assert fates(decision) == {"a/x": ("ATT-1", "tried"), "b/y": ("SEL-9", "concurrency")}

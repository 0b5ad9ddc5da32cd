"""The life of a Task over fakes: queued, submitted, polled, switched, ended."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.explain_task import explain_task
from services.routing.domain.catalog import Binding, DegradationRule, Tier
from services.routing.domain.decision import HealthView
from services.routing.domain.task import AttemptState, Failure, TaskState
from services.routing.ports import Polled, Submitted
from services.routing.ports.alerts import AlertQuery
from tests.unit.routing.dispatch_fakes import FILM, stage
from tests.unit.routing.dispatch_offers import catalog, supply

BROKEN = Fault.of("provider_error", "the provider answered 500")


def failed(code: str, **changes: Any) -> Polled:
    """A poll that tells of the job's failure."""
    fault = Fault.of(code, code, **changes)
    failure = Failure(
        fault.category.value, fault.scope.value, fault.retryable, code, fault.message, fault.retry_after_ms
    )
    return Polled("failed", failure=failure)


async def test_a_task_goes_from_the_queue_to_its_result():
    """SEL-13, SEL-14, SEL-15: reserved, intent durable, submitted once, polled, succeeded, all given back."""
    play = stage()
    await play.submit()
    await play.work()
    running = await play.task()
    assert running.state is TaskState.RUNNING
    assert running.attempts[0].state is AttemptState.ACCEPTED
    assert len(play.capacity.live()) == 1
    await play.pass_time(3)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.result is not None
    assert done.result.artifacts == (FILM,)
    attempt = done.attempts[0]
    assert attempt.reserved_at is not None
    assert attempt.submitted_at is not None
    assert done.spent == Money("CNY", Decimal(1)) == attempt.cost
    assert play.provider.sends(attempt.client_token) == 1
    assert play.capacity.live() == {}
    assert play.health.outcomes == {attempt.id: None}
    rounds = await play.desk.store.rounds("t1")
    assert [item.outcome for item in rounds] == ["reserved"]
    explained = await explain_task(play.desk, "t1")
    steps, story = explained.steps, explained.story
    assert len(steps) == 4
    assert any("was accepted as job-" in sentence for sentence in story)


async def test_a_job_that_finishes_within_the_call_is_settled_at_once():
    """SEL-15: no poll follows a submission that delivered, and the reported cost is what is booked."""
    play = stage()
    play.provider.cost = Money("CNY", Decimal("0.25"))
    play.provider.answers["a/clip"] = [Submitted("", play.provider.delivered())]
    await play.submit()
    await play.work()
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.spent == Money("CNY", Decimal("0.25"))
    assert [name for name, _ in play.provider.calls] == ["submit"]


async def test_the_intent_is_durable_before_the_first_byte_leaves():
    """ATT-5, SEL-14: when the provider is called, the Attempt stands in `submitting` with its token and its round."""
    seen = []

    async def look(effect: str) -> None:
        if effect == "provider.submit":
            task = await play.task()
            seen.append((task.attempts[0].state, task.attempts[0].client_token, task.rounds))

    play = stage(effect=look)
    await play.submit()
    await play.work()
    token = (await play.task()).attempts[0].client_token
    assert seen == [(AttemptState.SUBMITTING, token, 1)]


async def test_a_failed_supply_is_left_for_another_one():
    """ATT-1, ATT-2: a retryable failure of the Supply switches once, to the Supply that was not tried."""
    play = stage()
    play.provider.answers["a/clip"] = [BROKEN]
    await play.submit()
    await play.pass_time(5)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert [attempt.supply for attempt in done.attempts] == ["a/clip", "b/clip"]
    assert done.attempts[0].failure is not None
    assert done.attempts[0].failure.code == "provider_error"
    assert play.health.outcomes[done.attempts[0].id] is not None
    assert play.capacity.live() == {}


async def test_the_last_permitted_failure_ends_the_task_with_everything_visible():
    """ATT-1, ATT-4: two Attempts by default, then failed, with every Attempt and the final fault."""
    play = stage()
    play.provider.polls = [failed("provider_error"), failed("model_unavailable")]
    await play.submit()
    await play.pass_time(10)
    done = await play.task()
    assert done.state is TaskState.FAILED
    assert done.failure is not None
    assert done.failure.code == "model_unavailable"
    assert [attempt.state for attempt in done.attempts] == [AttemptState.FAILED, AttemptState.FAILED]
    assert len(play.provider.ledger) == 2


@pytest.mark.parametrize(
    "code", ["content_rejected", "real_person_rejected", "invalid_request", "material_unreachable"]
)
async def test_what_the_request_did_wrong_is_not_tried_elsewhere(code: str):
    """ATT-2: content and request failures never switch."""
    play = stage()
    play.provider.answers["a/clip"] = [Fault.of(code, "no")]
    await play.submit()
    await play.pass_time(5)
    done = await play.task()
    assert done.state is TaskState.FAILED
    assert done.failure is not None
    assert done.failure.code == code
    assert len(done.attempts) == 1
    assert done.spent == Money.zero("CNY")


async def test_a_failure_is_paid_for_where_the_supply_charges_it():
    """COST-7: what a failed Attempt has cost counts as spent before the next one."""
    dear = (supply(name, charges_on_failure=True) for name in ("a/clip", "b/clip"))
    play = stage(offers=catalog(*dear))
    play.provider.polls = [failed("provider_error")]
    await play.submit()
    await play.pass_time(6)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.spent == Money("CNY", Decimal(2))


@pytest.mark.parametrize(
    "code, spent", [("rate_limited", 1), ("key_invalid", 1), ("connect_failed", 1), ("provider_error", 2)]
)
async def test_a_refusal_at_the_door_is_never_paid_for(code: str, spent: int):
    """COST-7, VER-7: what never became a job cost nothing, also where failures are charged; of a 500 nobody knows."""
    play = stage(offers=catalog(*(supply(name, charges_on_failure=True) for name in ("a/clip", "b/clip"))))
    play.provider.answers["a/clip"] = [Fault.of(code, "refused")]
    await play.submit()
    await play.pass_time(6)
    done = await play.task()
    assert [attempt.supply for attempt in done.attempts] == ["a/clip", "b/clip"]
    assert done.spent == Money("CNY", Decimal(spent))


async def test_a_degraded_task_says_so():
    """TIER-6, TIER-7: rule, profiles and dropped inputs stand in the result, and an operator is told."""
    offers = catalog(supply("a/clip"), supply("b/clip"))
    rule = DegradationRule("r933-900", 1, "933", "900", ("reference_videos",), verified=True, published=True)
    model = offers.models["clip"]
    bindings = (Binding("a/clip", Tier.EXACT), Binding("b/clip", Tier.DEGRADED, rule="r933-900"))
    lesser = replace(offers, rules={rule.id: rule}, models={"clip": replace(model, bindings=bindings)})
    play = stage(offers=lesser)
    play.health.supplies["a/clip"] = HealthView("disabled", epoch=1, revision=1, limit=0)
    await play.submit(input={"prompt": "p", "duration_s": 5, "reference_videos": [{"url": "http://x/v.mp4"}]})
    await play.pass_time(4)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED, (done.failure, done.waiting_reason)
    assert done.result is not None
    assert (done.result.rule, done.result.requested_profile, done.result.actual_profile) == ("r933-900", "933", "900")
    assert done.result.dropped_inputs == ("reference_videos",)
    assert "reference_videos" not in done.attempts[0].input
    kinds = {alert.kind for alert in (await play.desk.store.alerts(AlertQuery()))[0]}
    assert kinds == {"exact_supply_unavailable", "degradation_in_use"}


async def test_the_release_survives_a_capacity_that_is_away():
    """CAP-8: a failed release neither hides the result nor delays it; the time to live frees the slot."""
    play = stage(offers=catalog(supply("a/clip", 1)))
    await play.submit()
    await play.work()
    play.capacity.away = Fault.of("governance_backend_down", "down")
    await play.pass_time(3)
    assert (await play.task()).state is TaskState.SUCCEEDED
    assert len(play.capacity.live()) == 1
    play.clock.advance(60)
    assert play.capacity.live() == {}


async def test_an_outcome_is_told_until_health_has_it():
    """HLT-13: the debt survives a health that is away, and is told once it is back."""
    play = stage()
    play.provider.answers["a/clip"] = [Submitted("", play.provider.delivered())]
    await play.submit()

    async def away_after_decision() -> None:
        await play.dispatch.scan()
        await play.dispatch.settled()

    play.health.channels["a"] = HealthView()
    await away_after_decision()
    attempt = (await play.task()).attempts[0]
    assert play.health.outcomes == {attempt.id: None}
    play.provider.answers["a/clip"] = [Submitted("", play.provider.delivered())]
    await play.submit("t2")

    async def cut(effect: str) -> None:
        if effect == "provider.submitted":
            play.health.away = Fault.of("peer_unavailable", "gone")

    play.provider.effect = cut
    await away_after_decision()
    second = (await play.task("t2")).attempts[0]
    assert second.id not in play.health.outcomes
    assert second.report_pending
    play.health.away = None
    await play.pass_time(1)
    assert second.id in play.health.outcomes
    assert not (await play.task("t2")).attempts[0].report_pending

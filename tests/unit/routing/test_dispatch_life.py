"""The life of a Task over fakes: queued, submitted, polled, switched, ended."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.cancel_task import cancel_task
from services.routing.app.read_tasks import explain_task, get_task
from services.routing.app.submit_task import Submission, check_task
from services.routing.domain.catalog import Binding, DegradationRule, Tier
from services.routing.domain.decision import HealthView
from services.routing.domain.request import Request
from services.routing.domain.task import AttemptState, Failure, TaskState
from services.routing.ports import Polled, Refused, Submitted, TaskQuery
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import FILM, catalog, stage, supply

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
    steps, story = await explain_task(play.desk, "t1")
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


async def test_with_one_supply_the_second_attempt_waits_for_its_retry_after():
    """ATT-3a: the same Supply again, not before it said, with that as the reason of waiting."""
    play = stage(offers=catalog(supply("a/clip")))
    play.provider.answers["a/clip"] = [Fault.of("rate_limited", "slow down", retry_after_ms=7000)]
    await play.submit()
    await play.pass_time(6)
    waiting = await play.task()
    assert waiting.state is TaskState.QUEUED
    assert waiting.waiting_reason.startswith("retry: supply a/clip not before")
    assert len(play.provider.calls) == 1
    await play.pass_time(5)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    second = done.attempts[1].submitted_at
    assert second is not None
    assert (second - START).total_seconds() >= 7


async def test_no_attempt_begins_after_the_window():
    """ATT-3: twenty minutes after it was created a Task starts nothing new; what was accepted goes on."""
    play = stage(offers=catalog(supply("a/clip")))
    play.provider.polls = [Polled("running")] * 1000
    await play.submit("running")
    await play.work()
    play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=1, revision=1, limit=0)
    await play.submit("late")
    await play.pass_time(1140, step_s=60)
    assert (await play.task("late")).state is TaskState.QUEUED
    await play.pass_time(65, step_s=5)
    late = await play.task("late")
    assert late.state is TaskState.FAILED
    assert late.failure is not None
    assert late.failure.code == "supply_unavailable"
    assert (await play.task("running")).state is TaskState.RUNNING
    play.provider.polls = []
    await play.pass_time(4)
    assert (await play.task("running")).state is TaskState.SUCCEEDED


async def test_a_task_waits_with_one_reason_and_one_saved_round():
    """ATT-10, SEL-17: looking again each second, an equal decision is not saved again; a new one is."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))
    play.provider.polls = [Polled("running")] * 5
    await play.submit("t1")
    await play.submit("t2")
    await play.pass_time(4)
    waiting = await play.task("t2")
    assert waiting.state is TaskState.QUEUED
    assert waiting.waiting_reason == "capacity: supply a/clip concurrency 1 of 1"
    assert [item.outcome for item in await play.desk.store.rounds("t2")] == ["waiting"]
    await play.pass_time(20)
    assert (await play.task("t2")).state is TaskState.SUCCEEDED
    assert [item.outcome for item in await play.desk.store.rounds("t2")] == ["waiting", "reserved"]


async def test_twenty_tasks_share_sixteen_slots():
    """CAP-10: 20 queued, 5 + 8 + 3 slots: 16 run at once, 4 wait with a reason; none is over-admitted; all end."""
    play = stage(offers=catalog(supply("a/clip", 5), supply("b/clip", 8), supply("c/clip", 3)))
    for number in range(20):
        await play.submit(f"t{number:02}")
    await play.work()
    tasks = [await play.task(f"t{number:02}") for number in range(20)]
    assert sum(task.state is TaskState.RUNNING for task in tasks) == 16
    assert all(task.waiting_reason.startswith("capacity: ") for task in tasks if task.state is TaskState.QUEUED)
    await play.pass_time(1, step_s=1)
    await play.pass_time(8)
    assert {(await play.task(f"t{number:02}")).state for number in range(20)} == {TaskState.SUCCEEDED}
    assert play.capacity.highest == {"a/clip": 5, "b/clip": 8, "c/clip": 3}
    assert play.capacity.live() == {}


async def test_a_freed_slot_is_used_at_the_next_look_without_any_hint():
    """CAP-10: the durable scan alone hands a freed slot on within a second."""
    play = stage(offers=catalog(supply("a/clip", 1)))
    outsider = supply("a/clip", 1)
    await play.capacity.reserve("foreign", outsider, HealthView(), HealthView())
    await play.submit()
    await play.work()
    assert (await play.task()).state is TaskState.QUEUED
    await play.capacity.release("foreign")
    await play.pass_time(1, step_s=1)
    assert (await play.task()).state is TaskState.RUNNING


async def test_a_refused_reservation_is_a_round_of_its_own():
    """SEL-17: the refused round stays as it was, the next one is made from fresh snapshots."""
    play = stage()
    play.capacity.refusals = [Refused("supply a/clip", "stale_health", 1, 0)]
    await play.submit()
    await play.work()
    task = await play.task()
    assert task.state is TaskState.RUNNING
    rounds = await play.desk.store.rounds("t1")
    assert [(item.round, item.outcome) for item in rounds] == [(1, "refused"), (2, "reserved")]
    assert rounds[0].note == "supply a/clip stale_health 0 of 1"
    assert task.attempts[0].round == 2


async def test_refusals_without_end_become_a_wait():
    """SEL-17, ATT-10: a step tries a bounded number of rounds, then the Task waits for the gate that refused."""
    play = stage(rounds_per_step=3)
    play.capacity.refusals = [Refused("channel a", "concurrency", 5, 5)] * 3
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    task = await play.task()
    assert task.state is TaskState.QUEUED
    assert task.waiting_reason == "capacity: channel a concurrency 5 of 5"
    assert task.rounds == 3


async def test_without_an_answer_of_governance_nobody_is_admitted():
    """ATT-10: when capacity or health is away, a Task waits with that reason and goes on by itself afterwards."""
    play = stage()
    play.health.away = Fault.of("peer_unavailable", "health cannot be reached")
    await play.submit()
    await play.work()
    waiting = await play.task()
    assert waiting.waiting_reason.startswith("governance: peer_unavailable")
    assert play.provider.calls == []
    play.health.away = None
    await play.pass_time(6)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_a_failed_poll_changes_nothing_but_the_next_poll():
    """HLT-10, ATT-10: the Attempt stays as it is, the pause grows, nothing is told to health."""
    play = stage()
    away = Fault.of("connect_failed", "the provider cannot be reached")
    play.provider.polls = [away, away, away]
    await play.submit()
    await play.work()
    await play.pass_time(2.5)
    task = await play.task()
    assert task.attempts[0].state is AttemptState.ACCEPTED
    assert task.attempts[0].poll_failures == 1
    assert task.waiting_reason.startswith("provider: connect_failed")
    assert play.health.outcomes == {}
    first = task.next_action_at
    assert first is not None
    await play.pass_time((first - play.clock.now()).total_seconds() + 0.5)
    second = (await play.task()).next_action_at
    assert second is not None
    assert (second - play.clock.now()).total_seconds() > 6
    await play.pass_time(40)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert len(done.attempts) == 1


async def test_a_job_that_is_never_heard_of_again_is_given_up():
    """ATT-4: polls that fail for long enough end the Attempt; its quote is booked and an operator is told."""
    play = stage(offers=catalog(supply("a/clip")), poll_give_up_s=100)
    play.provider.polls = [Fault.of("key_invalid", "401")] * 100
    await play.submit()
    await play.pass_time(200, step_s=10)
    task = await play.task()
    assert task.attempts[0].state is AttemptState.FAILED
    assert task.attempts[0].failure is not None
    assert task.attempts[0].failure.code == "provider_timeout"
    assert task.attempts[0].cost == task.attempts[0].quote
    page, _ = await play.desk.store.alerts("cost_anomaly", "", 10, "")
    assert [alert.subject for alert in page] == [task.attempts[0].id]


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
    kinds = {alert.kind for alert in (await play.desk.store.alerts("", "", 10, ""))[0]}
    assert kinds == {"exact_supply_unavailable", "degradation_in_use"}


async def test_a_cancel_before_submission_never_calls_the_provider():
    """ATT-8: a durable flag; a queued Task ends without a call."""
    play = stage(offers=catalog(supply("a/clip", 1)))
    play.provider.polls = [Polled("running")] * 99
    await play.submit("t1")
    await play.work()
    await play.submit("t2")
    await play.work()
    asked = await cancel_task(play.desk, "t2", "changed my mind")
    assert asked.cancel_requested
    await play.work()
    assert (await play.task("t2")).state is TaskState.CANCELLED
    assert [name for name, _ in play.provider.calls] == ["submit"]


async def test_a_cancel_between_decision_and_intent_still_never_calls_the_provider():
    """ATT-8: the flag set while the slot is being reserved refuses the intent; the slot is given back."""

    async def intervene(effect: str) -> None:
        if effect == "capacity.reserved":
            await cancel_task(play.desk, "t1", "now")

    play = stage(effect=intervene)
    await play.submit()
    await play.work()
    assert (await play.task()).state is TaskState.CANCELLED
    assert play.provider.calls == []
    assert play.capacity.live() == {}


async def test_a_running_task_is_stopped_at_its_provider():
    """ATT-8: after submission the provider's cancel is tried, and the cost that it reports is settled."""
    play = stage()
    play.provider.polls = [Polled("running")] * 99
    play.provider.stops = [(True, Money("CNY", Decimal("0.40")))]
    await play.submit()
    await play.work()
    await cancel_task(play.desk, "t1", "")
    await play.work()
    task = await play.task()
    assert task.state is TaskState.CANCELLED
    assert task.attempts[0].state is AttemptState.CANCELLED
    assert task.spent == Money("CNY", Decimal("0.40"))
    assert play.capacity.live() == {}


async def test_a_success_that_comes_first_wins_over_a_cancel():
    """ATT-8: a provider that runs the job to its end is followed to it; the result is not thrown away."""
    play = stage()
    play.provider.stops = [(False, None)]
    await play.submit()
    await play.work()
    await cancel_task(play.desk, "t1", "")
    await play.pass_time(3)
    task = await play.task()
    assert task.state is TaskState.SUCCEEDED
    assert task.cancel_requested
    again = await cancel_task(play.desk, "t1", "")
    assert again.state is TaskState.SUCCEEDED


async def test_a_cancelled_task_does_not_switch():
    """ATT-8: a failure after the cancel ends the Task as cancelled, without another Attempt."""
    play = stage()
    play.provider.stops = [(False, None)]
    play.provider.polls = [failed("provider_error")]
    await play.submit()
    await play.work()
    await cancel_task(play.desk, "t1", "")
    await play.pass_time(5)
    task = await play.task()
    assert task.state is TaskState.CANCELLED
    assert len(task.attempts) == 1


async def test_past_its_deadline_no_result_is_wanted():
    """ATT-9: a durable deadline: a queued Task fails, a running one is stopped at its provider and fails."""
    play = stage(offers=catalog(supply("a/clip", 1)))
    play.provider.polls = [Polled("running")] * 99
    deadline = play.clock.now().replace(second=10)
    await play.submit("running", deadline=deadline)
    await play.work()
    await play.submit("queued", deadline=deadline)
    await play.pass_time(11)
    for task_id in ("running", "queued"):
        task = await play.task(task_id)
        assert task.state is TaskState.FAILED, task_id
        assert task.failure is not None
        assert task.failure.code == "deadline_exceeded"
        assert task.finished_at is not None
        assert (task.finished_at - deadline).total_seconds() <= 1
    assert ("cancel", "a/clip") in play.provider.calls
    assert play.capacity.live() == {}


async def test_submitting_twice_is_one_task_and_another_body_is_refused():
    """ATT-9: request_id is the Task; the same body finds it, another one is a conflict."""
    play = stage()
    first = await play.submit()
    again = await play.submit()
    assert again.created_at == first.created_at
    with pytest.raises(Fault) as refused:
        await play.submit(input={"prompt": "a train", "duration_s": 5})
    assert refused.value.code == "idempotency_conflict"
    assert (await play.desk.store.find(TaskQuery()))[0] == (first,)


async def test_the_door_refuses_what_cannot_be_served_and_keeps_nothing():
    """SEL-1, SEL-2: unknown model, bad input and control characters are refused; checking creates nothing."""
    play = stage()
    for request, code in (
        (Request("t", "nothing", {"prompt": "p"}), "model_not_published"),
        (Request("t", "clip", {"prompt": 7}), "validation_failed"),
        (Request("t", "clip", {"prompt": "a\x00b"}), "validation_failed"),
    ):
        with pytest.raises(Fault) as refused:
            await check_task(play.desk, Submission("t1", request))
        assert refused.value.code == code
    await check_task(play.desk, Submission("t1", Request("t", "clip", {"prompt": "p", "duration_s": 5})))
    with pytest.raises(Fault) as missing:
        await get_task(play.desk, "t1")
    assert missing.value.code == "not_found"


async def test_a_foreign_task_is_not_found():
    """SEL-1: another tenant hears the same words as for a Task that does not exist."""
    play = stage()
    await play.submit()
    for task_id, tenant in (("t1", "stranger"), ("t2", "t")):
        with pytest.raises(Fault) as refused:
            await get_task(play.desk, task_id, tenant)
        assert refused.value.code == "not_found"
        assert refused.value.message == f"task {task_id!r} does not exist"
    assert (await get_task(play.desk, "t1", "t")).id == "t1"


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
    """HLT-11: the debt survives a health that is away, and is told once it is back."""
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

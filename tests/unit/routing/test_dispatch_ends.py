"""Ends that somebody asked for, and the door: cancels, deadlines, repeated and refused submissions."""

from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.cancel_task import cancel_task
from services.routing.app.read_tasks import get_task
from services.routing.app.submit_task import Submission, check_task, submit_task
from services.routing.domain.request import Request
from services.routing.domain.task import AttemptState, Failure, TaskState
from services.routing.ports import Polled, TaskQuery
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import catalog, supply

BROKEN = Fault.of("provider_error", "the provider answered 500")


def failed(code: str, **changes: Any) -> Polled:
    """A poll that tells of the job's failure."""
    fault = Fault.of(code, code, **changes)
    failure = Failure(
        fault.category.value, fault.scope.value, fault.retryable, code, fault.message, fault.retry_after_ms
    )
    return Polled("failed", failure=failure)


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


async def test_what_is_handed_over_as_cancelled_never_begins():
    """ATT-8: a submission of the same Task that was on its way finds it ended, and one that came before is ended."""
    play = stage()
    first = await play.submit("early")
    for name in ("late", "early"):
        taken = await submit_task(play.desk, Submission(name, first.request, cancel_requested=True))
        assert taken.cancel_requested
    assert (await play.submit("late")).cancel_requested
    await play.work()
    assert [(await play.task(name)).state for name in ("late", "early")] == [TaskState.CANCELLED] * 2
    assert play.provider.calls == []
    assert (await play.submit("late")).state is TaskState.CANCELLED


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
        (Request("t", "clip", {"prompt": "p", "seed": float("nan")}), "validation_failed"),
        (Request("t", "clip", {"prompt": "p", "duration_s": float("inf")}), "validation_failed"),
        (Request("t", "clip", {"prompt": "p", "reference_images": [{"url": float("nan")}]}), "validation_failed"),
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

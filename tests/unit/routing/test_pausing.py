"""Pausing over fakes: nothing begins, what is at a provider is followed, and whoever asks is told."""

import pytest

from libs.faults.fault import Fault
from services.routing.app.cancel_task import cancel_task
from services.routing.app.explain_task import explain_task
from services.routing.app.pause_tasks import pause_tasks
from services.routing.domain import transitions
from services.routing.domain.task import CANCELLING, FOLLOWED, HELD, TaskState
from services.routing.ports import Polled
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply
from tests.unit.routing.test_dispatch_waiting import failed


async def pause(play: Stage, *task_ids: str) -> None:
    """Hold them."""
    await pause_tasks(play.desk, task_ids, paused=True)


async def resume(play: Stage, *task_ids: str) -> None:
    """Let them go on."""
    await pause_tasks(play.desk, task_ids, paused=False)


async def test_a_paused_task_is_not_submitted_although_a_slot_comes_free():
    """RUN-1a: who waits for a slot and is paused stays where it is; when it goes on it is placed at once."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))
    play.provider.polls = [Polled("running")] * 3
    await play.submit("first")
    await play.submit("held")
    await play.work()
    await pause(play, "held", "unknown")
    await pause(play, "held")
    await play.pass_time(30)
    assert (await play.task("first")).state is TaskState.SUCCEEDED
    held = await play.task("held")
    assert (held.state, held.attempts, held.told_reason) == (TaskState.QUEUED, (), HELD)
    assert len(play.provider.ledger) == 1
    await resume(play, "held", "unknown")
    await play.work()
    assert (await play.task("held")).state is TaskState.RUNNING


async def test_a_pause_between_decision_and_intent_holds_the_task():
    """RUN-1a, CAP-8: it comes while a slot is being reserved: nothing is sent, and the slot is given back."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))

    async def pause_it(effect: str) -> None:
        if effect == "capacity.reserved":
            await pause(play, "t1")

    play.capacity.effect = pause_it
    await play.submit()
    await play.work()
    task = await play.task()
    assert (task.state, task.attempts, task.paused) == (TaskState.QUEUED, (), True)
    assert play.provider.calls == []
    assert play.capacity.live() == {}


async def test_what_was_sent_is_followed_and_nothing_else_begins():
    """RUN-1a: the pause comes after the intent: the result is recorded; after a failure no second Attempt begins."""
    play = stage(offers=catalog(supply("a/clip"), supply("b/clip")))

    async def pause_it(effect: str) -> None:
        if effect == "provider.submit":
            await pause(play, "good", "bad")

    play.provider.effect = pause_it
    await play.submit("good")
    await play.work()
    assert (await play.task("good")).told_reason == FOLLOWED
    await play.pass_time(4)
    assert (await play.task("good")).state is TaskState.SUCCEEDED
    play.provider.polls = [failed("provider_error")]
    await play.submit("bad")
    await play.pass_time(60, step_s=5)
    bad = await play.task("bad")
    assert (bad.state, len(bad.attempts), bad.told_reason) == (TaskState.QUEUED, 1, HELD)
    play.provider.effect = no_more
    await resume(play, "bad")
    await play.pass_time(4)
    done = await play.task("bad")
    assert (done.state, len(done.attempts)) == (TaskState.SUCCEEDED, 2)


async def no_more(effect: str) -> None:
    """Nothing happens on the way any more."""


async def test_a_paused_task_is_cancelled_at_once():
    """ATT-8: a pause is in nobody's way who wants the end."""
    play = stage()
    await play.submit()
    await pause(play, "t1")
    await cancel_task(play.desk, "t1", "")
    await play.work()
    assert (await play.task()).state is TaskState.CANCELLED


async def test_a_cancelled_job_that_its_provider_goes_on_with_says_so():
    """ATT-8, RUN-1a: a Run holds its Tasks before it cancels them; nobody is told to resume what is to end."""
    play = stage()
    play.provider.polls = [Polled("running")] * 3
    await play.submit()
    await play.work()
    await pause(play, "t1")
    await cancel_task(play.desk, "t1", "")
    assert (await play.task()).told_reason == CANCELLING


async def test_the_window_goes_on_counting():
    """ATT-3: twenty minutes after its creation a paused Task ends, and says that it was paused until then."""
    play = stage()
    await play.submit()
    await pause(play, "t1")
    await play.pass_time(1190, step_s=70)
    assert (await play.task()).state is TaskState.QUEUED
    await play.pass_time(80, step_s=20)
    task = await play.task()
    assert task.failure is not None
    assert (task.state, task.failure.code) == (TaskState.FAILED, "supply_unavailable")
    assert "while it was paused" in task.failure.message
    assert play.provider.calls == []


async def test_the_story_says_that_it_is_paused():
    """ATT-10, SEL-24: whatever it waited for before."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))
    play.provider.polls = [Polled("running")] * 3
    for name in ("first", "held"):
        await play.submit(name)
    await play.work()
    await pause(play, "held")
    assert (await explain_task(play.desk, "held")).story[-1] == f"It waits now: {HELD}."
    await resume(play, "held")
    assert "capacity:" in (await explain_task(play.desk, "held")).story[-1]


async def test_a_pause_waits_for_no_catalogue_to_end():
    """RUN-8: whoever is to go on goes on, although nobody could be paused at this moment."""
    play = stage()
    await play.submit()
    await pause(play, "t1")
    play.catalog.away = Fault.of("governance_backend_down", "restarting")
    with pytest.raises(Fault):
        await pause(play, "t1")
    await resume(play, "t1")
    assert not (await play.task()).paused


async def test_nothing_is_held_with_an_attempt_at_work():
    """SEL-25: the domain refuses to put a Task away whose Attempt somebody has to follow."""
    play = stage()
    play.provider.polls = [Polled("running")]
    await play.submit()
    await play.work()
    with pytest.raises(transitions.IllegalMove):
        transitions.held(await play.task(), play.clock.now())

"""What survives: lost answers, dead workers, operators' words, leases, the breaker's steps."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.cancel_task import cancel_task
from services.routing.app.follow_health import HealthFollower
from services.routing.app.keep_leases import keep_leases
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.domain.decision import HealthView
from services.routing.domain.task import AttemptState, Task, TaskState
from services.routing.ports import Polled, Reconciled, Write
from services.routing.ports.alerts import AlertQuery
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import steered_world
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply

UNKNOWN = Reconciled("unknown", "", "not listed yet")


async def test_a_lost_answer_is_found_again_without_a_second_submission():
    """ATT-6: uncertain, looked up within 5 s, accepted, followed to the result: one submission in the ledger."""
    play = stage()
    play.provider.answers["a/clip"] = [None]
    await play.submit()
    await play.work()
    lost = await play.task()
    assert lost.state is TaskState.DISPATCHING
    assert lost.attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN
    assert lost.waiting_reason.startswith("uncertain: ")
    assert len(play.capacity.live()) == 1
    assert play.health.outcomes == {}
    await play.pass_time(5)
    asked = ("reconcile", lost.attempts[0].client_token)
    assert asked in play.provider.calls
    await play.pass_time(5)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert len(done.attempts) == 1
    assert len(play.provider.ledger) == 1
    assert play.capacity.live() == {}


async def test_a_submission_that_was_not_taken_is_followed_by_another_attempt():
    """ATT-6: only once the records say so; within ATT-1; nothing was paid and health hears nothing."""
    play = stage()
    play.provider.answers["a/clip"] = [Fault.of("submission_unknown", "reset")]
    await play.submit()
    await play.work()
    assert [name for name, _ in play.provider.calls] == ["submit"]
    await play.pass_time(12)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert [attempt.state for attempt in done.attempts] == [AttemptState.NOT_ACCEPTED, AttemptState.SUCCEEDED]
    assert done.attempts[0].cost == Money.zero("CNY")
    assert done.attempts[0].id not in play.health.outcomes


async def test_what_cannot_be_found_out_ends_with_an_alert_and_an_anomaly():
    """ATT-6: past the deadline `submission_unresolved`, never another provider; an operator is told twice over."""
    play = stage(offers=catalog(policy={"uncertain_deadline_s": 300.0}))
    play.provider.answers["a/clip"] = [None]
    play.provider.verdicts = [UNKNOWN, Fault.of("connect_failed", "away")] + [UNKNOWN] * 100
    await play.submit()
    await play.pass_time(299)
    task = await play.task()
    assert task.attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN
    assert 5 < task.attempts[0].reconcile_count < 20
    await play.pass_time(5)
    ended = await play.task()
    assert ended.state is TaskState.FAILED
    assert ended.failure is not None
    assert ended.failure.code == "submission_unresolved"
    assert ended.attempts[0].state is AttemptState.UNRESOLVED
    assert ended.attempts[0].cost is None
    assert len(ended.attempts) == 1
    assert len(play.provider.ledger) == 1
    page, _ = await play.desk.store.alerts(AlertQuery())
    assert {alert.kind for alert in page} == {"submission_unresolved", "cost_anomaly"}
    assert {alert.subject for alert in page} == {ended.attempts[0].id}
    (charge,) = [alert.message for alert in page if alert.kind == "cost_anomaly"]
    assert charge == "up to 1.00 CNY may have been charged at a/clip"


async def uncertain(**settings: Any) -> Stage:
    """A stage with a Task whose submission is uncertain and stays so."""
    play = stage(**settings)
    play.provider.answers["a/clip"] = [None]
    play.provider.verdicts = [UNKNOWN] * 500
    await play.submit()
    await play.work()
    return play


async def test_an_operator_says_that_it_was_accepted():
    """ATT-6: with the provider's id the Attempt goes on; saying it twice is harmless, the contrary a conflict."""
    play = await uncertain()
    attempt = (await play.task()).attempts[0]
    word = Resolution(attempt.id, "accepted", f"job-{attempt.client_token}")
    assert (await resolve_attempt(play.desk, word)).attempts[0].state is AttemptState.ACCEPTED
    await resolve_attempt(play.desk, word)
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(attempt.id, "not_accepted"))
    assert refused.value.code == "conflict"
    await play.pass_time(3)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_an_operator_says_that_it_was_not_accepted():
    """ATT-6: the next Attempt may follow."""
    play = await uncertain()
    attempt = (await play.task()).attempts[0]
    after = await resolve_attempt(play.desk, Resolution(attempt.id, "not_accepted", comment="the bill is empty"))
    assert after.attempts[0].state is AttemptState.NOT_ACCEPTED
    assert after.attempts[0].failure is not None
    assert "the bill is empty" in after.attempts[0].failure.message
    await play.pass_time(3)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_an_operators_word_after_the_end_corrects_the_cost_alone():
    """ATT-4, ATT-6: an unresolved Attempt stays as it is, the Task stays failed, its cost is booked."""
    play = await uncertain(offers=catalog(policy={"uncertain_deadline_s": 30.0}))
    await play.pass_time(31)
    attempt = (await play.task()).attempts[0]
    assert attempt.state is AttemptState.UNRESOLVED
    after = await resolve_attempt(play.desk, Resolution(attempt.id, "accepted", "job-x"))
    assert after.state is TaskState.FAILED
    assert after.attempts[0].state is AttemptState.UNRESOLVED
    assert after.spent == attempt.quote
    assert (await resolve_attempt(play.desk, Resolution(attempt.id, "accepted", "job-x"))).spent == attempt.quote
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(attempt.id, "not_accepted"))
    assert refused.value.code == "conflict"


class Overtaken(MemoryTasks):
    """A store in which a worker acts between an operator's look at a Task and the claim of it."""

    meanwhile: Any = None

    async def claim_one(self, task_id: str, *claim: Any) -> Task | None:
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            await act()
        return await super().claim_one(task_id, *claim)


async def test_a_word_does_not_reach_another_attempt_than_the_one_it_names():
    """ATT-6, SEL-25: the worker clears the Attempt up and begins the next one while the operator's word is under way:
    the word is refused, the running Attempt keeps its job, and the Task is in nobody's hands."""
    store = Overtaken()
    play = await uncertain(store=store)
    named = (await play.task()).attempts[0]

    async def switch() -> None:
        play.provider.verdicts = [Reconciled("not_accepted", "", "its list")]
        play.provider.polls = [Polled("running")] * 9
        await play.pass_time(3)

    store.meanwhile = switch
    with pytest.raises(Fault) as refused:
        await resolve_attempt(play.desk, Resolution(named.id, "accepted", "job-of-the-first"))
    assert refused.value.code == "conflict"
    running = (await play.task()).attempts[1]
    assert running.provider_task_id == f"job-{running.client_token}"
    assert await play.desk.store.claim_one("t1", "next", play.clock.now(), play.clock.now()) is not None


@pytest.mark.parametrize(
    "word, code",
    [
        (Resolution("x", "maybe"), "validation_failed"),
        (Resolution("x", "accepted"), "validation_failed"),
        (Resolution("x", "not_accepted"), "not_found"),
    ],
)
async def test_a_word_that_makes_no_sense_is_refused(word: Resolution, code: str):
    """ATT-6: what to resolve and how must be said."""
    with pytest.raises(Fault) as refused:
        await resolve_attempt(stage().desk, word)
    assert refused.value.code == code


async def test_a_cancel_waits_for_an_uncertain_submission_to_be_found_out():
    """ATT-8, ATT-6: cancelled only once it is known what is to be cancelled."""
    play = await uncertain()
    await cancel_task(play.desk, "t1", "")
    await play.work()
    assert (await play.task()).state is TaskState.DISPATCHING
    play.provider.verdicts = []
    await play.pass_time(10)
    assert (await play.task()).state is TaskState.CANCELLED
    assert ("cancel", "a/clip") in play.provider.calls


async def test_a_reservation_whose_process_died_goes_back_to_the_queue():
    """ATT-7: in `reserved` nothing was sent; the Attempt is closed without counting and another one follows."""
    play = stage()
    await play.submit()
    await play.work()
    held = await play.desk.store.claim_one("t1", "dead", play.clock.now(), play.clock.now())
    assert held is not None
    sent = held.attempts[0]
    forged = replace(held, state=TaskState.DISPATCHING, attempts=(replace(sent, state=AttemptState.RESERVED),))
    await play.desk.store.save(Write(held, replace(forged, next_action_at=play.clock.now()), play.clock.now()))
    await play.pass_time(4)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert (done.attempts[0].state, done.attempts[0].counted) == (AttemptState.FAILED, False)
    assert len(done.attempts) == 2


async def test_a_worker_that_was_taken_over_drops_its_work():
    """ATT-7: its late answer changes nothing, raises nothing, and sends nothing."""
    slow = stage()
    quick = stage(like=slow, worker="worker-2")

    async def stand_still(effect: str) -> None:
        if effect == "provider.submitted":
            slow.clock.advance(16)
            slow.provider.effect = _nothing
            await quick.follow.scan()
            await quick.follow.settled()

    slow.provider.effect = stand_still
    await slow.submit()
    await slow.dispatch.scan()
    await slow.dispatch.settled()
    task = await slow.task()
    assert task.attempts[0].state is AttemptState.SUBMISSION_UNCERTAIN
    await quick.pass_time(10)
    done = await quick.task()
    assert done.state is TaskState.SUCCEEDED
    assert len(slow.provider.ledger) == 1


async def test_a_process_that_stood_still_before_its_intent_holds_the_task_while_it_submits():
    """ATT-5, SEL-25: the claim lapsed unnoticed while it decided; nobody doubts what it is about to send."""
    slow = stage()
    quick = stage(like=slow, worker="worker-2")

    async def stand_still(effect: str) -> None:
        if effect == "capacity.reserve":
            slow.clock.advance(16)

    async def look(effect: str) -> None:
        if effect == "provider.submit":
            await quick.follow.scan()
            await quick.follow.settled()

    slow.capacity.effect, slow.provider.effect = stand_still, look
    await slow.submit()
    await slow.dispatch.scan()
    await slow.dispatch.settled()
    assert (await slow.task()).attempts[0].state is AttemptState.ACCEPTED


async def test_a_process_that_stood_still_sends_nothing():
    """ATT-5: if much time went by while the intent was written, the claim may be another's: no byte leaves."""
    world, clock = steered_world()

    class Stalling(MemoryTasks):
        stalls = 1

        async def save(self, write: Write) -> Task:
            saved = await super().save(write)
            if write.unless_stopped and self.stalls:
                self.stalls -= 1
                clock.advance(10)
            return saved

    play = stage(store=Stalling(), world=(world, clock))
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    assert play.provider.calls == []
    assert (await play.task()).attempts[0].state is AttemptState.SUBMITTING
    await play.pass_time(30)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert done.attempts[0].state is AttemptState.NOT_ACCEPTED


async def test_an_answer_is_written_down_although_the_store_was_away_for_a_moment():
    """ATT-5: what a provider has accepted is not forgotten for a store that comes back within seconds."""

    class Flickering(MemoryTasks):
        absent = 2

        async def save(self, write: Write) -> Task:
            if write.after.state is TaskState.RUNNING and self.absent:
                self.absent -= 1
                raise Fault.of("governance_backend_down", "restarting")
            return await super().save(write)

    play = stage(store=Flickering())
    await play.submit()
    await play.dispatch.scan()
    while play.dispatch.in_hand:
        play.clock.advance(1)
        await _turn_of_the_loop()
    assert (await play.task()).state is TaskState.RUNNING


async def test_slots_of_running_work_are_kept_by_whoever_lives():
    """CAP-3, CAP-2: a job that runs for longer than the time to live keeps its slot, also after a restart."""
    play = stage(offers=catalog(supply("a/clip", 1)))
    play.provider.polls = [Polled("running")] * 999
    await play.submit("t1")
    await play.submit("t2")
    await play.work()
    for process in (play, stage(like=play, worker="next")):
        for _ in range(5):
            await process.pass_time(20, step_s=5)
            await keep_leases(process.desk)
    assert (await play.task("t2")).state is TaskState.QUEUED
    assert play.capacity.highest == {"a/clip": 1}
    assert len(play.capacity.renewed) == 10


async def test_what_health_allows_is_passed_on():
    """CAP-4: changed limits go to capacity, unchanged ones do not."""
    play = stage()
    follower = HealthFollower(play.desk)
    play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=1, revision=3, limit=0)
    await follower.tick()
    await follower.tick()
    assert play.capacity.applied == [dict(play.health.supplies)]
    play.health.supplies["a/clip"] = HealthView("probing", epoch=1, revision=4, limit=1)
    await follower.tick()
    play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=2, revision=5, limit=0)
    await follower.tick()
    assert [next(iter(views.values())).revision for views in play.capacity.applied] == [3, 4, 5]


async def test_a_recovery_wakes_who_waited_for_it():
    """CAP-10, TIER-1a: a Task that waits for health is looked at as soon as the follower sees a change."""
    play = stage(offers=catalog(supply("a/clip")), health_look_s=500.0)
    follower = HealthFollower(play.desk)
    play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=1, revision=1, limit=0)
    await follower.tick()
    await play.submit()
    await play.work()
    assert (await play.task()).waiting_reason == "health: supply a/clip circuit_open"
    await play.pass_time(5)
    assert (await play.task()).state is TaskState.QUEUED
    play.health.supplies["a/clip"] = HealthView("probing", epoch=1, revision=2, limit=1)
    await follower.tick()
    await play.work()
    assert (await play.task()).state is TaskState.RUNNING


async def test_a_step_with_a_bug_gives_the_task_back():
    """ATT-10: whatever goes wrong in a step, the Task is found again, and says so meanwhile."""
    play = stage()

    async def bug(effect: str) -> None:
        if effect == "quotes.quote":
            raise ZeroDivisionError

    play.quotes.effect = bug
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    waiting = await play.task()
    assert waiting.waiting_reason == "governance: internal"
    play.quotes.effect = _nothing
    await play.pass_time(10)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_a_task_whose_model_is_closed_waits_and_then_fails():
    """ATT-10, CAT-3: a change of the catalogue holds Tasks with a reason until it is undone or their window ends."""
    play = stage()
    open_model = play.catalog.revisions[0].models["clip"]
    closed = replace(play.catalog.revisions[0], revision=2, models={"clip": replace(open_model, published=False)})
    await play.submit("t1")
    play.catalog.revisions.append(closed)
    await play.work()
    assert (await play.task("t1")).waiting_reason == "model: 'clip' is not published"
    await play.pass_time(1230, step_s=10)
    failed = (await play.task("t1")).failure
    assert failed is not None
    assert failed.code == "model_not_published"


async def _nothing(_: str) -> None:
    """No effect is watched any more."""


async def _turn_of_the_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)

"""Waiting over fakes: for capacity, health, a Retry-After, an answer; each with its one reason and its end."""

from typing import Any

from libs.faults.fault import Fault
from services.routing.app.usher import FRONT
from services.routing.domain.catalog import RealPerson
from services.routing.domain.decision import HealthView
from services.routing.domain.task import AttemptState, Failure, TaskState
from services.routing.ports import Polled, Refused
from services.routing.ports.alerts import AlertQuery
from services.routing.settings import SPARED
from tests.support.worlds import START
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


async def test_who_waits_for_what_only_it_needs_is_in_nobodys_way():
    """CAP-10, CAP-11: more than a front's worth of Tasks wait for the one Supply that admits real people; a slot that
    comes free elsewhere is found within a second by the plain ones behind them."""
    away = supply("b/clip", 1, real_person=RealPerson.FORBIDDEN)
    play = stage(offers=catalog(supply("a/clip", 1), away))
    for lease, of in (("one", supply("a/clip", 1)), ("two", away)):
        await play.capacity.reserve(lease, of, HealthView(), HealthView())
    for number in range(FRONT + 2):
        await play.submit(f"real{number}", input={"prompt": "x", "duration_s": 5, "real_person": True})
    await play.submit("plain")
    await play.pass_time(3)
    await play.capacity.release("two")
    await play.pass_time(1, step_s=1)
    assert (await play.task("plain")).state is TaskState.RUNNING
    assert {(await play.task(f"real{number}")).state for number in range(FRONT + 2)} == {TaskState.QUEUED}


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


async def test_a_long_line_does_not_look_all_the_time():
    """CAP-10, CAP-11: only the head of a line looks, however long it is; all are served, in their order."""
    play = stage(offers=catalog(supply("a/clip", 2)))
    play.provider.polls = [Polled("running")] * 4
    for number in range(100):
        await play.submit(f"t{number:03}")
    await play.work()
    before = {number: (await play.task(f"t{number:03}")).revision for number in range(100)}
    await play.pass_time(1)
    looked = {number for number in range(100) if (await play.task(f"t{number:03}")).revision != before[number]}
    assert looked - {0, 1} <= set(range(2, 2 + FRONT))
    await play.pass_time(160)
    done = [await play.task(f"t{number:03}") for number in range(100)]
    assert {task.state for task in done} == {TaskState.SUCCEEDED}
    assert play.capacity.highest == {"a/clip": 2}
    begun = [task.attempts[0].submitted_at for task in done]
    assert begun == sorted(begun)


async def test_many_free_places_are_found_at_once():
    """CAP-10: whoever finds a place calls the next one, so that a line moves as fast as places come free."""
    play = stage(offers=catalog(supply("a/clip", 30)))
    play.provider.polls = [Polled("running")] * 100
    outsider = supply("a/clip", 30)
    for number in range(30):
        await play.capacity.reserve(f"foreign-{number}", outsider, HealthView(), HealthView())
    for number in range(40):
        await play.submit(f"t{number:02}")
    await play.work()
    for number in range(30):
        await play.capacity.release(f"foreign-{number}")
    await play.pass_time(0.5)
    assert play.capacity.in_use("a/clip") == 30


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
    full = Refused("channel a", "concurrency", 5, 5)
    play.capacity.refusals = [full, Refused("supply a/clip", "concurrency", 5, 5), full]
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    task = await play.task()
    assert task.state is TaskState.QUEUED
    assert task.waiting_reason == "capacity: channel a concurrency 5 of 5"
    assert task.rounds == 3


async def test_a_gate_that_no_snapshot_shows_is_asked_once_a_look_and_told_once():
    """SEL-17, ATT-10: refused for the same reason again and again, a Task adds no round and makes no haste."""
    play = stage(offers=catalog(supply("a/clip")))
    play.capacity.refusals = [Refused("supply a/clip", "requests", 60, 60)] * 100
    await play.submit()
    await play.work()
    await play.pass_time(10)
    assert 70 <= len(play.capacity.refusals) < 100
    task = await play.task()
    assert task.waiting_reason == "capacity: supply a/clip requests 60 of 60"
    assert [item.outcome for item in await play.desk.store.rounds("t1")] == ["refused"]
    play.capacity.refusals = []
    await play.pass_time(1)
    assert (await play.task()).state is TaskState.RUNNING


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


async def test_prices_that_are_not_told_yet_are_waited_for():
    """COST-4, ATT-10: after a change or a restart, rules that cost_quote has not heard of yet end no Task."""
    play = stage()
    play.quotes.revision = 0
    await play.submit()
    await play.work()
    waiting = await play.task()
    assert waiting.waiting_reason.startswith("governance: governance_backend_down")
    assert play.provider.calls == []
    play.quotes.revision = None
    await play.pass_time(6)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_a_failed_poll_changes_nothing_but_the_next_poll():
    """HLT-10, HLT-13: the Attempt stays as it is, the pause grows, nothing is told to health."""
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
    page, _ = await play.desk.store.alerts(AlertQuery(kind="cost_anomaly"))
    assert [alert.subject for alert in page] == [task.attempts[0].id]


async def test_a_blocked_head_is_not_in_the_way_of_other_tenants():
    """CAP-11: those first in the model wait for a Supply that stays full; another tenant's Task, which another Supply
    may take, has its slot within a second of the slot's coming free, and so has another class of urgency."""
    wide, narrow = supply("a/clip", 1), supply("b/clip", 2, capabilities={"duration_s": {"min": 1, "max": 5}})
    play = stage(offers=catalog(wide, narrow))
    play.provider.polls = [Polled("running")] * 100
    for name, held in (("w", wide), ("n1", narrow), ("n2", narrow)):
        await play.capacity.reserve(name, held, HealthView(), HealthView())
    for number in range(3 * FRONT):
        await play.submit(f"long-{number:02}", input={"prompt": "a boat", "duration_s": 10})
    await play.work()
    await play.submit("short", tenant="other")
    await play.submit("urgent", priority="high")
    await play.work()
    assert (await play.task("short")).waiting_reason.startswith("capacity:")
    await play.capacity.release("n1")
    await play.capacity.release("n2")
    await play.pass_time(1)
    assert (await play.task("short")).state is TaskState.RUNNING
    assert (await play.task("urgent")).state is TaskState.RUNNING
    assert {(await play.task(f"long-{number:02}")).state for number in range(3 * FRONT)} == {TaskState.QUEUED}


async def test_the_scan_alone_keeps_its_second_at_the_worst_moment():
    """CAP-10: a slot comes free right after the head of the line has looked, right before the usher comes by: the next
    round finds it, and with the claim's own scan all of it takes less than a second, jitter included."""
    play = stage(offers=catalog(supply("a/clip", 1)), hints=False)
    settings = play.desk.settings
    await play.capacity.reserve("foreign", supply("a/clip", 1), HealthView(), HealthView())
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    await play.capacity.release("foreign")
    passed = 0.0
    spared = 0.999 * SPARED * settings.waiting_look_s  # a moment later it would be called at once
    for pause_s in (spared, settings.waiting_look_s * 1.05):
        play.clock.advance(pause_s)
        passed += pause_s
        await play.desk.usher.tick()
    await play.dispatch.scan()
    await play.dispatch.settled()
    assert (await play.task()).state is TaskState.RUNNING
    assert passed + settings.scan_interval_s * 1.1 < 1

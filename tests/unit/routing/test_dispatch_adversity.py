"""What may go wrong around a step: refusals before a byte left, a store or catalogue away, answers that are none."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.tell_outcomes import tell_outcomes
from services.routing.domain.decision import HealthView
from services.routing.domain.task import AttemptState, Task, TaskState
from services.routing.ports import Polled, Write
from services.routing.store.tasks_memory import MemoryTasks
from tests.support.worlds import START
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog, supply

AWAY = Fault.of("governance_backend_down", "restarting")


class Refusing(MemoryTasks):
    """A store that refuses the next writes that bring a Task into `state`, each with the next of `faults`."""

    def __init__(self, state: TaskState, *faults: Fault) -> None:
        super().__init__()
        self.state = state
        self.faults = list(faults)

    async def save(self, write: Write) -> Task:
        if write.after.state is self.state and self.faults:
            raise self.faults.pop(0)
        return await super().save(write)


async def settled(play: Stage) -> None:
    """Let the steps in hand come to their end, however long they pause in between."""
    while play.dispatch.in_hand or play.follow.in_hand:
        play.clock.advance(1)
        await turns()


async def turns() -> None:
    """Let every step go on as far as it can now."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_refused_before_a_byte_left_is_tried_again_ever_more_rarely():
    """ATT-3: such an Attempt does not count, so its pauses bound how many there are: 2 minutes make no more than 10."""
    play = stage()
    refusal = Fault.of("overloaded", "1000 calls are in flight")
    play.provider.answers = {"a/clip": [refusal] * 500, "b/clip": [refusal] * 500}
    await play.submit()
    await play.work()
    await play.pass_time(120)
    assert 5 < len((await play.task()).attempts) <= 10
    play.provider.answers = {}
    await play.pass_time(70)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert [attempt.counted for attempt in done.attempts].count(True) == 1


async def test_an_answer_is_written_down_although_other_writers_were_in_the_way():
    """ATT-5: a deadlock in the store does not turn an accepted job into a doubtful one."""
    play = stage(store=Refusing(TaskState.RUNNING, Fault.of("revision_conflict", "a deadlock")))
    await play.submit()
    await play.dispatch.scan()
    await settled(play)
    assert (await play.task()).state is TaskState.RUNNING


async def test_an_answer_is_written_down_although_the_catalogue_cannot_be_read():
    """ATT-2, ATT-5: a refusal of the content ends the Task at once; what the policy says by now is not waited for."""
    play = stage()

    async def take_away(effect: str) -> None:
        if effect == "provider.submit":
            play.catalog.away = AWAY

    play.provider.effect = take_away
    play.provider.answers["a/clip"] = [Fault.of("content_rejected", "the prompt was refused")]
    await play.submit()
    await play.dispatch.scan()
    await play.dispatch.settled()
    task = await play.task()
    assert task.failure is not None
    assert task.failure.code == "content_rejected"


async def test_an_end_by_deadline_books_what_the_provider_reported_though_the_store_was_away():
    """ATT-8: the quote is booked where the provider could not be stopped, never because a write failed."""
    play = stage(store=Refusing(TaskState.FAILED, *[AWAY] * 6), offers=catalog(supply("a/clip")))
    play.provider.polls = [Polled("running")] * 99
    play.provider.stops = [(True, Money("CNY", Decimal("0.25")))] * 2
    await play.submit(deadline=START + timedelta(seconds=3))
    await play.work()
    play.clock.advance(4)
    await play.follow.scan()
    await settled(play)
    await play.pass_time(10)
    task = await play.task()
    assert task.failure is not None
    assert task.failure.code == "deadline_exceeded"
    assert task.spent == Money("CNY", Decimal("0.25"))


async def test_a_task_outlives_a_change_of_the_catalogues_currency():
    """COST-3, COST-8: what it had spent counts on in the new currency, and the next result is booked in it."""
    old = catalog(supply("a/clip", charges_on_failure=True))
    play = stage(offers=old)
    play.provider.polls = [Polled("failed")]
    await play.submit()
    await play.work()
    play.catalog.revisions.append(replace(old, revision=2, currency="USD", fx={"CNY": Decimal("0.14")}))
    await play.pass_time(20)
    done = await play.task()
    assert done.state is TaskState.SUCCEEDED
    assert [attempt.quote.currency for attempt in done.attempts] == ["CNY", "USD"]
    assert done.spent == Money("USD", Decimal("1.14"))


async def test_a_task_whose_money_cannot_be_converted_waits_with_that_reason():
    """COST-3, ATT-10: without a rate nothing more is spent; what comes first is chosen by nobody."""
    old = catalog(supply("a/clip", charges_on_failure=True))
    play = stage(offers=old)
    play.provider.polls = [Polled("failed")]
    await play.submit()
    await play.work()
    play.catalog.revisions.append(replace(old, revision=2, currency="USD"))
    await play.pass_time(20)
    assert (await play.task()).waiting_reason == "price: no rate from CNY to USD"


class Mute(MemoryTasks):
    """A store that this process cannot reach for its claims."""

    cut_off = False

    async def prolong(self, claims: Sequence[tuple[str, int]], until: datetime) -> frozenset[str]:
        if self.cut_off:
            raise AWAY
        return await super().prolong(claims, until)


@pytest.mark.parametrize("cut_off", [False, True])
async def test_a_submission_is_broken_off_once_its_claim_is_lost(cut_off: bool):
    """ATT-7, SEL-25: taken over, or unable to prolong before the claim lapses, a process goes on with no submission
    that another one is asking the provider's records about."""
    store = Mute()
    play = stage(store=store)

    async def hang(effect: str) -> None:
        if effect == "provider.submit":
            await asyncio.Event().wait()

    play.provider.effect = hang
    await play.submit()
    await play.dispatch.scan()
    await turns()
    play.clock.advance(10)
    await play.dispatch.prolong()
    play.clock.advance(14)
    store.cut_off = cut_off
    with contextlib.suppress(Fault):
        await play.dispatch.prolong()
    await turns()
    assert play.dispatch.in_hand == 1  # the claim is prolonged, or has not lapsed yet
    play.clock.advance(16)
    if not cut_off:
        await play.desk.store.claim_one("t1", "worker-2", play.clock.now(), play.clock.now())
    with contextlib.suppress(Fault):
        await play.dispatch.prolong()
    await turns()
    assert play.dispatch.in_hand == 0
    assert (await play.task()).attempts[0].state is AttemptState.SUBMITTING


async def test_a_draining_process_keeps_its_claims_while_steps_are_in_hand():
    """ATT-7, SEL-25: what a stopping process still submits is not doubted by another one meanwhile."""
    play = stage()
    quick = stage(like=play, worker="worker-2")
    answered = asyncio.Event()

    async def hang(effect: str) -> None:
        if effect == "provider.submitted":
            await answered.wait()

    play.provider.effect = hang
    await play.submit()
    await play.dispatch.scan()
    await turns()
    play.clock.advance(14)
    draining = asyncio.ensure_future(play.dispatch.drain())
    await turns()
    play.clock.advance(2)
    assert await quick.desk.store.claim_one("t1", "worker-2", play.clock.now(), play.clock.now()) is None
    answered.set()
    await draining
    assert (await play.task()).state is TaskState.RUNNING


async def test_a_success_without_a_result_is_no_answer():
    """HLT-13, ATT-4: it counts as a poll that failed: asked again with growing pauses, given up in the end."""
    play = stage(offers=catalog(supply("a/clip")), poll_give_up_s=60)
    play.provider.polls = [Polled("succeeded")] * 99
    await play.submit()
    await play.pass_time(10)
    task = await play.task()
    assert task.attempts[0].poll_failures >= 1
    assert task.waiting_reason.startswith("provider: malformed_reply")
    await play.pass_time(200)
    assert (await play.task()).attempts[0].state is AttemptState.FAILED


async def test_an_outcome_that_health_refuses_does_not_hold_up_the_others():
    """HLT-13: one of a Supply that health never heard of stays owed; those that ended after it are told."""
    play = stage(offers=catalog(supply("a/clip", 1), supply("b/clip", 1)))
    play.health.unheard_of = {"a/clip"}
    await play.submit("t1")
    await play.submit("t2")
    await play.work()
    play.health.unheard_of |= {"b/clip"}
    play.clock.advance(10)
    await play.work()
    ended = {task.attempts[0].supply: task.attempts[0] for task in (await play.task("t1"), await play.task("t2"))}
    assert play.health.outcomes == {}
    play.health.unheard_of = {min(ended.values(), key=lambda a: (str(a.finished_at), a.id)).supply}
    await tell_outcomes(play.desk)
    assert len(play.health.outcomes) == 1
    assert [a.supply for a in await play.desk.store.unreported(9)] == list(play.health.unheard_of)


async def test_a_cooldown_that_is_over_by_our_clock_makes_no_busy_loop():
    """HLT-1, ATT-10: health's clock may be behind ours; the head of the line looks now and then, not all the time."""
    play = stage(offers=catalog(supply("a/clip")))
    over = play.clock.now() - timedelta(seconds=2)
    play.health.supplies["a/clip"] = HealthView("circuit_open", epoch=1, revision=1, limit=0, cooldown_until=over)
    looks: list[str] = []

    async def look(effect: str) -> None:
        looks.append(effect)

    play.capacity.effect = look
    await play.submit()
    await play.work()
    assert looks.count("capacity.snapshot") == 1
    await play.pass_time(3, step_s=0.1)
    assert 6 <= looks.count("capacity.snapshot") - 1 <= 3 / 0.3
    assert (await play.task()).waiting_reason.startswith("health: ")


async def test_a_turn_that_comes_after_the_window_starts_nothing():
    """ATT-3: the window may end while a Task waits for its turn to reserve; nothing is sent, the slot is given back."""
    play = stage()

    async def take_long(effect: str) -> None:
        if effect == "capacity.reserve":
            play.clock.advance(1201)

    play.capacity.effect = take_long
    await play.submit()
    await play.work()
    assert play.provider.calls == []
    assert play.capacity.live() == {}
    assert (await play.task()).state is TaskState.FAILED


class LosingTasks(MemoryTasks):
    """Writes the end of an Attempt, and loses the answer."""

    lost = 0

    async def save(self, write: Write) -> Task:
        """See the port."""
        saved = await super().save(write)
        ends = any(item.finished_at for item in write.after.attempts if item not in write.before.attempts)
        if ends and not self.lost:
            self.lost += 1
            raise Fault.of("governance_backend_down", "the connection to the database broke")
        return saved


async def test_an_end_whose_commit_was_not_heard_of_gives_its_slot_back():
    """CAP-8, SYN-7: the answer of the store was lost, the end was written: what it held is released, not left to its
    time to live, and health is told at once."""
    tasks = LosingTasks()
    play = stage(offers=catalog(supply("a/clip", 1)), store=tasks)
    await play.submit()
    await play.work()
    play.clock.advance(5)
    await play.follow.scan()
    await settled(play)
    task = await play.task()
    assert (tasks.lost, task.state) == (1, TaskState.SUCCEEDED)
    assert play.capacity.in_use("a/clip") == 0
    assert task.attempts[0].id in play.health.outcomes


class TakenOver(LosingTasks):
    """Is away for the end of an Attempt, and meanwhile somebody else claims its Task."""

    async def save(self, write: Write) -> Task:
        """See the port."""
        if not self.lost and any(item.finished_at for item in write.after.attempts):
            self.lost += 1
            row = self._rows[write.before.id]
            row.task = replace(row.task, epoch=row.task.epoch + 1)
            raise AWAY
        return await super().save(write)


async def test_what_a_newer_owner_holds_is_not_given_back():
    """ATT-7, CAP-8: away once and fenced then, a step has written nothing, and the slot is its successor's."""
    tasks = TakenOver()
    play = stage(offers=catalog(supply("a/clip", 1)), store=tasks)
    await play.submit()
    await play.work()
    play.clock.advance(5)
    await play.follow.scan()
    await settled(play)
    assert (tasks.lost, (await play.task()).state) == (1, TaskState.RUNNING)
    assert play.capacity.in_use("a/clip") == 1

"""Turns of deciding over fakes: who waits at once is decided together, and no slot is lost on the way."""

import asyncio
import gc
import itertools
from dataclasses import replace

from libs.faults.fault import Fault
from services.routing.app.desk import Errands
from services.routing.app.gather import gather, look
from services.routing.app.perform_step import perform_step
from services.routing.app.work_queue import WorkQueue
from services.routing.domain.market import market_of
from services.routing.domain.task import Task, TaskState
from services.routing.ports import Lane, Polled, Write
from services.routing.store.tasks_memory import MemoryTasks
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import catalog, supply


async def test_within_a_turn_a_slot_is_chosen_once():
    """SEL-13: of five Tasks claimed at once two find the two slots; the others see them taken and ask for none."""
    play = stage(offers=catalog(supply("a/clip", slots=2)))
    asked: list[str] = []

    async def effect(name: str) -> None:
        asked.append(name)

    play.capacity.effect = effect
    for number in range(5):
        await play.submit(f"t{number}")
    await play.dispatch.scan()
    await play.dispatch.settled()
    states = [(await play.task(f"t{number}")).state for number in range(5)]
    assert states == [TaskState.RUNNING] * 2 + [TaskState.QUEUED] * 3
    assert (asked.count("capacity.snapshot"), asked.count("capacity.reserve")) == (1, 2)
    assert (await play.task("t4")).waiting_reason == "capacity: supply a/clip concurrency 2 of 2"


async def test_a_slot_that_nobody_came_to_hold_is_given_back():
    """CAP-8: the step is ended (its claim was lost) while its slot is being taken; the slot is released at once."""
    play = stage(offers=catalog(supply("a/clip", slots=1)))
    reserved, go_on = asyncio.Event(), asyncio.Event()

    async def effect(name: str) -> None:
        if name == "capacity.reserved":
            reserved.set()
            await go_on.wait()

    play.capacity.effect = effect
    await play.submit("t1")
    await play.dispatch.scan()
    await reserved.wait()
    play.dispatch._abandon(["t1"])
    await play.dispatch.settled()
    assert play.capacity.in_use("a/clip") == 1
    go_on.set()
    await play.desk.turn.close()
    await asyncio.sleep(0)
    await play.desk.errands.done()
    assert play.capacity.in_use("a/clip") == 0


async def test_decisions_of_one_revision_share_what_the_catalogue_fixes():
    """CAT-2: the same objects for every decision under a revision, other ones under the next: what is worked out from
    them once holds for all of them, and for nobody else."""
    play = stage()
    one, other = await play.submit("t1"), await play.submit("t2")
    views = await look(play.desk)
    first, second = await gather(play.desk, one, views), await gather(play.desk, other, views)
    assert first.inputs is not None
    assert second.inputs is not None
    assert market_of(first.inputs) is market_of(second.inputs)
    play.catalog.revisions.append(replace(catalog(), revision=2))
    third = await gather(play.desk, one, views)
    assert third.inputs is not None
    assert market_of(third.inputs) is not market_of(first.inputs)


async def test_polls_keep_to_their_pace():
    """ATT-9: with more jobs out than may be polled in a second, the scan takes so many and the rest is later."""
    play = stage(offers=catalog(supply("a/clip", slots=30)))
    play.provider.polls = [Polled("running")] * 1000
    for number in range(30):
        await play.submit(f"t{number:02}")
    await play.work()
    paced = WorkQueue(play.desk, Lane.FOLLOW, 64, perform_step, per_s=5.0)
    play.clock.advance(10)
    polled = [0]
    for _ in range(4):
        while await paced.scan():
            await paced.settled()
        await paced.settled()
        polled.append(sum(1 for call, _ in play.provider.calls if call == "poll"))
        play.clock.advance(1)
    assert [after - before for before, after in itertools.pairwise(polled)] == [5, 5, 5, 5]


async def test_a_channel_that_hangs_is_not_in_the_way_of_others():
    """CAP-11: submissions under way take no place where Tasks are decided, and of one Channel there are so many."""
    play = stage(offers=catalog(supply("a/clip", slots=500)), submissions_per_channel=40)
    hanging, go_on = asyncio.Event(), asyncio.Event()

    async def effect(name: str) -> None:
        if name == "provider.submit":
            hanging.set()
            await go_on.wait()

    play.provider.effect = effect
    narrow = WorkQueue(play.desk, Lane.DISPATCH, 8, perform_step, aside=lambda: play.desk.sending.total)
    for number in range(100):
        await play.submit(f"t{number:02}")
    for _ in range(20):
        await narrow.scan()
        for _ in range(40):
            await asyncio.sleep(0)
    assert 40 <= play.desk.sending.total < 40 + 8
    waiting = [await play.task(f"t{number:02}") for number in range(100)]
    assert sum(task.state is TaskState.QUEUED for task in waiting) == 100 - play.desk.sending.total
    assert {task.waiting_reason for task in waiting if task.rounds and task.state is TaskState.QUEUED} == {
        "capacity: channel a submissions 40 of 40"
    }
    go_on.set()
    await narrow.settled()
    await play.pass_time(5)
    assert {(await play.task(f"t{number:02}")).state for number in range(100)} == {TaskState.SUCCEEDED}


async def test_a_bug_over_one_reservation_is_that_tasks_alone():
    """CAP-8, SEL-13: what breaks one reservation leaves the others of its turn their slots, each taken once."""
    play = stage(offers=catalog(supply("a/clip", slots=9)))
    play.provider.polls = [Polled("running")] * 20
    asked = 0

    async def effect(name: str) -> None:
        nonlocal asked
        asked += name == "capacity.reserved"
        if name == "capacity.reserved" and asked == 2:
            raise ValueError("a bug over this one")

    play.capacity.effect = effect
    for number in range(3):
        await play.submit(f"t{number}")
    await play.dispatch.scan()
    await play.dispatch.settled()
    states = [(await play.task(f"t{number}")).state for number in range(3)]
    assert states == [TaskState.RUNNING, TaskState.QUEUED, TaskState.RUNNING]
    assert (asked, play.capacity.in_use("a/clip")) == (3, 2)


async def test_a_step_ends_when_this_very_process_claims_its_task_anew():
    """ATT-7: after it stood still for longer than a lease, a process that takes over from itself has one step for the
    Task, and it is the new one."""
    play = stage(offers=catalog(supply("a/clip")), drain_s=0.01)
    play.provider.polls = [Polled("running")] * 9
    await play.submit("t1")
    await play.work()
    play.clock.advance(10)
    polls: list[asyncio.Event] = []
    polled = asyncio.Event()

    async def effect(name: str) -> None:
        if name == "provider.poll":
            polls.append(asyncio.Event())
            polled.set()
            try:
                await asyncio.Event().wait()
            finally:
                polls[0].set()

    play.provider.effect = effect
    await play.follow.scan()
    await polled.wait()
    play.clock.advance(play.desk.settings.worker_lease_s + 1)
    await play.follow.scan()
    for _ in range(20):
        await asyncio.sleep(0)
    assert (len(polls), polls[0].is_set(), play.follow.in_hand) == (2, True, 1)
    await play.follow.drain()


async def test_draining_waits_for_the_slot_of_a_step_that_was_ended():
    """CAP-8: a process that stops gives back what its last turn has reserved for a step that it had to end."""
    play = stage(offers=catalog(supply("a/clip", slots=1)), drain_s=0.01)
    reserved, go_on = asyncio.Event(), asyncio.Event()

    async def effect(name: str) -> None:
        if name == "capacity.reserved":
            reserved.set()
            await go_on.wait()

    play.capacity.effect = effect
    await play.submit("t1")
    await play.dispatch.scan()
    await reserved.wait()
    await play.dispatch.drain()
    done = asyncio.ensure_future(play.desk.errands.done())
    await asyncio.sleep(0)
    assert not done.done()
    go_on.set()
    await done
    assert play.capacity.in_use("a/clip") == 0


async def test_an_errand_whose_caller_was_ended_fails_in_silence():
    """CAP-8: a fenced end that nobody waits for any more is logged, and is no complaint of the loop."""
    errands, complaints = Errands(), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))

    async def fenced() -> None:
        await asyncio.sleep(0)
        raise Fault.of("fenced", "a newer owner")

    async def step() -> None:
        await asyncio.shield(errands.begin(fenced()))

    caller = asyncio.ensure_future(step())
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait((caller,))
    await errands.done()
    gc.collect()
    assert caller.cancelled()
    assert complaints == []


async def test_an_end_that_is_being_written_is_given_back_though_its_step_is_ended():
    """CAP-8: a step is ended (its process stops) while the store writes the end of its Attempt: the slot is released,
    not left to its time to live."""
    writing, go_on = asyncio.Event(), asyncio.Event()

    class SlowTasks(MemoryTasks):
        """Takes its time over an end."""

        async def save(self, write: Write) -> Task:
            """See the port."""
            if write.after.finished_at is not None:
                writing.set()
                await go_on.wait()
            return await super().save(write)

    play = stage(offers=catalog(supply("a/clip", slots=1)), store=SlowTasks(), drain_s=0.01)
    await play.submit("t1")
    await play.work()
    play.clock.advance(10)
    await play.follow.scan()
    await writing.wait()
    await play.follow.drain()
    go_on.set()
    await play.desk.errands.done()
    assert (await play.task("t1")).state is TaskState.SUCCEEDED
    assert play.capacity.in_use("a/clip") == 0

"""Creating, carrying on, joining, streaming and cancelling Runs."""

import asyncio
from decimal import Decimal

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.app.command_run import cancel_run, pause_run, steer_run
from services.runs.app.create_run import create_run
from services.runs.app.find_run import find_run
from services.runs.app.hub import Hub
from services.runs.app.join_run import join_run
from services.runs.app.read_run import read_run
from services.runs.app.stream_events import list_events, stream_events
from services.runs.domain.run import Order, Run, RunState
from services.runs.domain.task_view import TaskView
from tests.unit.runs.fakes import OUT_OF_ORDER
from tests.unit.runs.house import House

COST = Money("CNY", Decimal("5.00"))


class Generations(House):
    """A house of single generations."""

    async def end(self, run: Run, state: str = "succeeded") -> None:
        """Let routing end the Run's Task, and see it."""
        failure = OUT_OF_ORDER if state == "failed" else None
        self.routing.views[run.node.task_id] = TaskView(run.node.task_id, 9, state, COST, failure=failure)
        await self.advance.follow_running()


async def test_what_can_never_be_served_is_refused_at_once() -> None:
    """EDG-2: a model that is not published is told to the caller, and no Run exists."""
    house = Generations()
    with pytest.raises(Fault) as caught:
        await house.create("unknown")
    assert caught.value.code == "model_not_published"
    assert await house.runs.page("a", [], None, "", 10) == []


async def test_a_known_key_is_answered_before_the_order_is_looked_at() -> None:
    """IDEM-1: the same key and body replay though the model has gone; another body is a conflict, whatever is in it."""
    house = Generations()
    arguments = {"tenant": "a", "labels": {}, "key": "k"}
    order = Order("clip", {"prompt": "x"})
    first, replayed = await create_run(
        house.runs, house.routing, house.world, house.budgets, order=order, fingerprint="f", **arguments
    )
    assert not replayed
    bad = Order("unknown", {})
    again, replayed = await create_run(
        house.runs, house.routing, house.world, house.budgets, order=bad, fingerprint="f", **arguments
    )
    assert (again.id, replayed) == (first.id, True)
    with pytest.raises(Fault) as caught:
        await create_run(house.runs, house.routing, house.world, house.budgets, order=bad, fingerprint="g", **arguments)
    assert caught.value.code == "idempotency_conflict"


async def test_a_new_run_is_pending_and_then_handed_over_once() -> None:
    """EDG-4: creation answers `pending`; the tick hands the Task over, and a second tick does nothing."""
    house = Generations()
    run = await house.create()
    assert run.state is RunState.PENDING
    assert await house.advance.submit_pending()
    assert not await house.advance.submit_pending()
    assert house.routing.submitted == [run.node.task_id]
    assert (await find_run(house.runs, "a", run.id)).state is RunState.RUNNING


async def test_a_crash_between_hand_over_and_record_submits_the_same_task() -> None:
    """RUN-6: the Task's id is chosen before, so handing over again is the same Task."""
    house = Generations()
    run = await house.create()
    await house.routing.submit(house.plan(run), run, run.node)  # what a process that died before its commit had done
    await house.advance.submit_pending()
    assert set(house.routing.submitted) == {run.node.task_id}
    assert [event.kind for event in await house.runs.events(run.id, 0, 10)].count("node_started") == 1


async def test_routing_that_is_away_delays_and_a_refusal_fails() -> None:
    """EDG-4: a fault that may pass leaves the Run pending; one that will not is data on the Run."""
    house = Generations()
    run = await house.create()
    house.routing.fault = Fault.of("governance_backend_down", "away")
    await house.advance.submit_pending()
    assert (await find_run(house.runs, "a", run.id)).state is RunState.PENDING
    house.routing.fault = Fault.of("model_not_published", "closed meanwhile")
    await house.advance.submit_pending()
    failed = await find_run(house.runs, "a", run.id)
    assert failed.state is RunState.FAILED
    assert failed.failure is not None
    assert failed.failure.code == "model_not_published"


async def test_a_reader_is_told_why_the_run_waits_now() -> None:
    """ATT-10: routing is asked for the reason of this moment; while it is away, the reason that it told last stands."""
    house = Generations()
    run = await house.create()
    await house.advance.submit_pending()
    task_id = run.node.task_id
    house.routing.views[task_id] = TaskView(task_id, 2, "queued", None, waiting_reason="capacity: then")
    await house.advance.follow_running()
    house.routing.reasons[task_id] = "health: now"
    assert (await read_run(house.runs, house.routing, "a", run.id)).node.waiting_reason == "health: now"
    house.routing.fault = Fault.of("peer_unavailable", "away")
    assert (await read_run(house.runs, house.routing, "a", run.id)).node.waiting_reason == "capacity: then"


async def test_another_tenants_run_is_not_found() -> None:
    """AUTH-1: reading, joining, streaming and cancelling another's Run is not_found."""
    house = Generations()
    run = await house.create(tenant="a")
    calls = [
        find_run(house.runs, "b", run.id),
        join_run(house.hub, "b", run.id, 1),
        list_events(house.runs, "b", run.id, 0, 10),
        cancel_run(house.desk, "b", run.id),
        anext(stream_events(house.hub, "b", run.id, 0)),
    ]
    for call in calls:
        with pytest.raises(Fault) as caught:
            await call
        assert caught.value.code == "not_found"


async def test_operators_look_at_whoevers_run_and_do_no_more() -> None:
    """AUTH-1: without a tenant a Run and its events are read, which is for operators; nothing of it is changed so."""
    house = Generations()
    run = await house.create(tenant="a")
    assert (await read_run(house.runs, house.routing, "", run.id)).tenant == "a"
    assert [event.sequence for event in await list_events(house.runs, "", run.id, 0, 10)] == [1]
    (first,) = await anext(stream_events(house.hub, "", run.id, 0))
    assert first.kind == "run_created"
    for call in (
        cancel_run(house.desk, "", run.id),
        pause_run(house.desk, "", run.id, "", "c"),
        steer_run(house.desk, house.plans, "", run.id, "style", {}, "s"),
        read_run(house.runs, house.routing, "", "r9"),
    ):
        with pytest.raises(Fault) as caught:
            await call
        assert caught.value.code == "not_found"


async def test_a_join_answers_when_the_run_rests() -> None:
    """EDG-2: join waits for the end, woken by the commit."""
    house = Generations()
    run = await house.create()
    await house.advance.submit_pending()
    joined = asyncio.create_task(join_run(house.hub, "a", run.id, 60))
    await asyncio.sleep(0)
    assert not joined.done()
    await house.end(run)
    assert (await joined).state is RunState.SUCCEEDED


async def test_a_join_that_waits_in_vain_says_join_timeout() -> None:
    """EDG-2: 504 join_timeout, retryable; the Run goes on."""
    house = Generations()
    run = await house.create()
    with pytest.raises(Fault) as caught:
        await join_run(house.hub, "a", run.id, 0.01)
    assert (caught.value.code, caught.value.retryable) == ("join_timeout", True)
    assert (await find_run(house.runs, "a", run.id)).state is RunState.PENDING


async def test_a_stream_tells_everything_once_and_ends() -> None:
    """SSE-3: from any cursor the rest arrives in order, without gap or repetition, and the stream closes at the end."""
    house = Generations()
    run = await house.create()

    async def collect(after: int) -> list[int]:
        batches = [batch async for batch in stream_events(house.hub, "a", run.id, after)]
        return [event.sequence for batch in batches for event in batch]

    early = asyncio.create_task(collect(0))
    await asyncio.sleep(0)
    await house.advance.submit_pending()
    late = asyncio.create_task(collect(2))
    await asyncio.sleep(0)
    await house.end(run)
    last = (await find_run(house.runs, "a", run.id)).last_sequence
    assert await early == list(range(1, last + 1))
    assert await late == list(range(3, last + 1))
    assert await collect(last) == []


async def test_events_of_another_process_are_found_by_the_poll() -> None:
    """SSE-3: without any hint the poll finds what another replica committed."""
    house = Generations()
    run = await house.create()
    other = house.beside()
    joined = asyncio.create_task(join_run(house.hub, "a", run.id, 60))
    await asyncio.sleep(0)
    await other.submit_pending()
    house.routing.views[run.node.task_id] = TaskView(run.node.task_id, 9, "succeeded", COST)
    await other.follow_running()
    await house.hub.poll()
    assert (await joined).state is RunState.SUCCEEDED


@pytest.mark.parametrize("after", [-1, 99])
async def test_a_cursor_that_lies_ahead_is_refused(after: int) -> None:
    """SSE-5: a cursor beyond the newest event is malformed_request."""
    house = Generations()
    run = await house.create()
    with pytest.raises(Fault) as caught:
        await list_events(house.runs, "a", run.id, after, 10)
    assert caught.value.code == "malformed_request"


async def test_a_cancel_before_the_start_ends_the_run_and_calls_nobody() -> None:
    """ATT-8: what was never handed over is handed over as cancelled, and ends so; cancelling again is harmless."""
    house = Generations()
    run = await house.create()
    assert (await cancel_run(house.desk, "a", run.id)).cancel_requested
    assert (await cancel_run(house.desk, "a", run.id)).cancel_requested
    await house.advance.submit_pending()
    assert (await find_run(house.runs, "a", run.id)).state is RunState.PENDING
    await house.advance.submit_pending()
    assert (await cancel_run(house.desk, "a", run.id)).state is RunState.CANCELLED
    assert (house.routing.submitted, house.routing.cancelled) == ([], [])
    assert house.routing.withdrawn == [run.node.task_id]


async def test_no_task_comes_to_life_behind_a_cancelled_run() -> None:
    """ATT-8: a process that stands still while it hands a Task over finds it cancelled; the Run did not end first."""
    house = Generations()
    run = await house.create()

    async def cancel_elsewhere() -> None:
        house.routing.during_submit = None
        await cancel_run(house.desk, "a", run.id)
        for _ in range(2):
            await house.advance.submit_pending()
            assert house.routing.withdrawn == [run.node.task_id]

    house.routing.during_submit = cancel_elsewhere
    await house.advance.submit_pending()
    assert (await find_run(house.runs, "a", run.id)).state is RunState.CANCELLED


async def test_a_cancel_that_meets_the_handing_over_reaches_the_task() -> None:
    """ATT-8: no Run is cancelled while its Task goes on, unknown to anybody, and is paid for."""
    house = Generations()
    run = await house.create()

    async def cancel_meanwhile() -> None:
        house.routing.views[run.node.task_id] = TaskView(run.node.task_id, 1, "queued", None)
        await cancel_run(house.desk, "a", run.id)

    house.routing.during_submit = cancel_meanwhile
    await house.advance.submit_pending()
    assert house.routing.cancelled == [run.node.task_id]
    assert (await find_run(house.runs, "a", run.id)).state is RunState.RUNNING
    await house.end(run, "cancelled")
    assert (await find_run(house.runs, "a", run.id)).state is RunState.CANCELLED


async def test_a_cancel_finds_the_task_that_a_dead_process_handed_over() -> None:
    """ATT-8, RUN-6: a crash between the handing over and its record leaves no Task behind."""
    house = Generations()
    run = await house.create()
    house.routing.views[run.node.task_id] = TaskView(run.node.task_id, 1, "queued", None)
    await cancel_run(house.desk, "a", run.id)
    await house.advance.submit_pending()
    assert (house.routing.submitted, house.routing.cancelled) == ([], [run.node.task_id])
    assert (await find_run(house.runs, "a", run.id)).state is RunState.RUNNING


async def test_a_cancel_holds_for_a_run_that_stands_in_the_list_behind_another() -> None:
    """ATT-8: the list of pending Runs is older than a cancel that comes while the first of them is handed over."""
    house = Generations()
    first, second = await house.create(), await house.create()

    async def cancel_the_other() -> None:
        await cancel_run(house.desk, "a", second.id)

    house.routing.during_submit = cancel_the_other
    await house.advance.submit_pending()
    await house.advance.submit_pending()
    assert house.routing.submitted == [first.node.task_id]
    assert (await find_run(house.runs, "a", second.id)).state is RunState.CANCELLED


async def test_a_cancel_is_passed_on_until_the_task_ends() -> None:
    """ATT-8: the flag is durable: every tick asks routing again until the Task ends; the Run ends as it did."""
    house = Generations()
    run = await house.create()
    await house.advance.submit_pending()
    house.routing.views[run.node.task_id] = TaskView(run.node.task_id, 2, "running", COST)
    assert (await cancel_run(house.desk, "a", run.id)).cancel_requested
    await house.advance.follow_running()
    await house.advance.follow_running()
    assert house.routing.cancelled == [run.node.task_id] * 2
    await house.end(run, "cancelled")
    assert (await find_run(house.runs, "a", run.id)).state is RunState.CANCELLED


async def test_a_finished_run_cannot_be_cancelled() -> None:
    """ATT-8: a cancel that lost the race is told so: run_terminal."""
    house = Generations()
    run = await house.create()
    await house.advance.submit_pending()
    await house.end(run)
    with pytest.raises(Fault) as caught:
        await cancel_run(house.desk, "a", run.id)
    assert caught.value.code == "run_terminal"


async def test_nobody_is_watched_after_leaving() -> None:
    """SSE-4: a client that leaves costs nothing afterwards: the poll asks for nobody."""
    house = Generations()
    run = await house.create()
    stream = stream_events(house.hub, "a", run.id, 0)
    await anext(stream)
    await stream.aclose()
    assert not house.hub.watched


async def test_news_of_one_run_wake_nobody_who_waits_for_another() -> None:
    """SSE-4: an idle stream costs nothing while other Runs have events: it is not even woken to look."""
    house = Generations()
    one, other = await house.create(), await house.create()
    with house.hub.watching(one.id), house.hub.watching(other.id):
        idle = house.hub.wait(other.id, other.last_sequence)
        news = idle.send(None)  # run by hand up to what it waits for
        waiting = asyncio.ensure_future(house.hub.wait(one.id, one.last_sequence))
        await asyncio.sleep(0)
        house.hub.tell(one.id, one.last_sequence + 1)
        await waiting
        assert not news.done()
        idle.close()


async def test_without_hints_the_poll_alone_ends_a_wait() -> None:
    """ATT-9, EVENT-1: an own commit wakes nobody when hints are off; the next look at the store does."""
    house = Generations()
    run = await house.create()
    quiet = Hub(house.runs, hints=False)
    with quiet.watching(run.id):
        waiting = asyncio.ensure_future(quiet.wait(run.id, 0))
        quiet.tell(run.id, 1)
        await asyncio.sleep(0)
        assert not waiting.done()
        await quiet.poll()
        await waiting

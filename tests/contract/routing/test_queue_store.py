"""The contract of `TaskStore` as a queue: whose turn it is, and who is woken; one suite, every implementation."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from services.routing.domain import transitions
from services.routing.domain.fairness import WEIGHTS, passed_at_most
from services.routing.domain.request import Terms
from services.routing.ports import Lane
from services.routing.ports.waking import Pick
from services.routing.store.queue_postgres import LINES
from services.routing.store.tasks_rows import CLASSES
from tests.contract.routing.tasks_stores import KINDS, at, opened, queued, to_submitting, write

UNTIL = at(15)


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest) -> str:
    """Where each implementation keeps its rows; a database of its own is only made for the one that needs it."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(address: str) -> AsyncIterator[Any]:
    """Each implementation in turn, empty."""
    async with opened(address) as made:
        yield made


async def test_no_class_of_urgency_starves(store: Any):
    """ATT-9: with all classes waiting, a `low` Task at the head is passed by no more than the stated bound."""
    for number in range(30):
        for name in WEIGHTS:
            await store.add(queued(f"{name}-{number:02}", priority=name))
    order = []
    while taken := await store.claim(Lane.DISPATCH, "w1", 3, at(1), UNTIL):
        order += [task.request.priority for task in taken]
    lows = [place for place, name in enumerate(order) if name == "low"]
    bound = sum(passed_at_most(WEIGHTS[name], WEIGHTS["low"]) for name in ("high", "normal"))
    assert lows[0] <= bound
    backlogged = order[: 7 * 7]
    assert [backlogged.count(name) for name in WEIGHTS] == [28, 14, 7]
    assert max(b - a for a, b in itertools.pairwise(lows)) <= bound + 1


async def parked(
    store: Any, task_id: str, reason: str = "capacity: full", looked: float = 5, key: str = "", **request: Any
) -> None:
    """A Task that waits with that reason and last looked then; `key` is that of the decision which it got."""
    await store.add(queued(task_id, **request))
    task = replace(await store.claim_one(task_id, "w1", at(looked), at(looked + 15)), round_key=key)
    await store.save(write(task, transitions.waiting(task, reason, at(1000)), now=looked))


async def test_parked_tasks_are_woken_by_their_turn(store: Any):
    """CAP-10, CAP-11: of each model those first in virtual time become due, whatever the parked ones wait for; who
    looks at a time of its own is left alone."""
    for number in range(4):
        await parked(store, f"a{number}")
    await parked(store, "late", priority="high")
    await parked(store, "b0", "health: a open", model="other")
    await parked(store, "own", "retry: not before", model="third")
    assert await store.claim(Lane.DISPATCH, "w1", 9, at(10), at(25)) == ()
    assert await store.wake(2, at(10), at(10)) == (3, True)
    due = await store.claim(Lane.DISPATCH, "w1", 9, at(10), at(25))
    assert {task.id for task in due} == {"a0", "late", "b0"}
    assert await store.wake(9, at(10), at(10)) == (3, True)
    assert {task.id for task in await store.claim(Lane.DISPATCH, "w1", 9, at(10), at(25))} == {"a1", "a2", "a3"}
    assert (await store.wake(9, at(10), at(10)))[0] == 0


async def test_who_waits_for_what_only_it_needs_hides_nobody(store: Any):
    """CAP-10, CAP-11: of each group that was decided alike the first ones become due, in the order of their tags."""
    for number in range(5):
        await parked(store, f"real{number}", key="only a, full")
    for number in range(3):
        await parked(store, f"plain{number}", key="a and b, full", tenant="other")
    await parked(store, "elsewhere", key="only a, full", model="zoo")
    assert await store.wake(2, at(10), at(10)) == (5, True)
    due = await store.claim(Lane.DISPATCH, "w1", 9, at(10), at(25))
    assert {task.id for task in due} == {"real0", "real1", "plain0", "plain1", "elsewhere"}


async def test_who_has_looked_lately_is_not_woken_by_the_scan(store: Any):
    """CAP-10: however many replicas come by, the head of a line looks no more often than it should."""
    await parked(store, "t1", looked=5)
    assert await store.wake(4, at(5.2), at(4.9)) == (0, True)
    assert await store.wake(4, at(5.4), at(5.1)) == (1, True)
    task = await store.claim_one("t1", "w1", at(6), at(21))
    await store.save(write(task, transitions.cancelled(task, at(6)), now=6))
    assert await store.wake(4, at(7), at(7)) == (0, False)


async def test_a_parked_task_is_due_when_its_time_is_over(store: Any):
    """ATT-3, ATT-9: nobody has to wake what has come to its end."""
    await parked(store, "t1")
    assert await store.claim(Lane.DISPATCH, "w1", 9, at(999), at(1014)) == ()
    assert (await store.claim(Lane.DISPATCH, "w1", 9, at(1001), at(1016)))[0].id == "t1"


async def test_a_new_line_is_not_behind_the_backlog_of_another(store: Any):
    """CAP-11: a tenant with a thousand Tasks waiting delays another's first one by no more than its share."""
    for number in range(40):
        await store.add(queued(f"many-{number:02}", tenant="many"))
    order = [task.id for task in await store.claim(Lane.DISPATCH, "w1", 10, at(1), UNTIL)]
    await store.add(queued("few-00", tenant="few"))
    order += [task.id for task in await store.claim(Lane.DISPATCH, "w1", 10, at(1), UNTIL)]
    assert order.index("few-00") in (10, 11)


async def test_a_task_that_waited_goes_before_those_that_came_later(store: Any):
    """CAP-11: waiting costs nobody its place in the line."""
    for number in range(3):
        await store.add(queued(f"t{number}"))
    first = (await store.claim(Lane.DISPATCH, "w1", 1, at(1), UNTIL))[0]
    await store.save(write(first, transitions.waiting(first, "retry: soon", at(3)), now=2))
    for number in range(3, 6):
        await store.add(queued(f"t{number}"))
    due = await store.claim(Lane.DISPATCH, "w1", 9, at(4), at(19))
    assert [task.id for task in due] == ["t0", "t1", "t2", "t3", "t4", "t5"]


async def test_what_must_not_wait_goes_before_polls(store: Any):
    """ATT-7, ATT-8: however many polls are due, a dead worker's submission and a cancel are taken first."""
    for number in range(6):
        await store.add(queued(f"t{number}"))
    for task in await store.claim(Lane.DISPATCH, "w1", 9, at(1), UNTIL):
        sending = await store.save(write(task, to_submitting(task), until=at(30)))
        if task.id != "t5":  # its worker dies while it submits
            out = transitions.accepted(sending, sending.attempts[0], "job", at(2), at(10))
            await store.save(write(sending, out, now=2))
    await store.ask_cancel("t3", "", at(35))
    assert {task.id for task in await store.claim(Lane.FOLLOW, "w2", 3, at(40), at(55))} == {"t5", "t3", "t0"}


async def test_virtual_time_outlives_a_process(pg_url: str):
    """ATT-9, CAP-11: after a restart a new line begins at the present, as before; else all that is new would go first
    until it had caught up with all that was ever done, and a backlog would starve for as long."""
    async with opened(pg_url) as store:
        for number in range(60):
            await store.add(queued(f"old-{number:02}", tenant="old"))
        assert len(await store.claim(Lane.DISPATCH, "w1", 30, at(1), at(100))) == 30
    async with opened(pg_url) as store:
        for number in range(30):
            await store.add(queued(f"new-{number:02}", tenant="new"))
        order = [task.id[:3] for task in await store.claim(Lane.DISPATCH, "w2", 10, at(2), at(100))]
    assert order.count("old") == 5


async def test_an_idle_line_earns_no_credit_over_a_restart(pg_url: str):
    """CAP-11: with nobody waiting, a process that starts anew takes up where the last one stood."""
    async with opened(pg_url) as store:
        await store.add(queued("idle", tenant="idle"))
        for number in range(30):
            await store.add(queued(f"t{number:02}", tenant="busy"))
        assert len(await store.claim(Lane.DISPATCH, "w1", 31, at(1), at(100))) == 31
    async with opened(pg_url) as store:
        for number in range(10):
            await store.add(queued(f"x{number:02}", tenant="idle"))
            await store.add(queued(f"y{number:02}", tenant="busy"))
        order = [task.id[0] for task in await store.claim(Lane.DISPATCH, "w2", 10, at(2), at(100))]
    assert order.count("y") == 5


async def test_a_cancel_does_not_wait_for_its_turn(store: Any):
    """ATT-8: however long the line is, what is only to be ended goes first, and moves nobody's place."""
    for number in range(20):
        await store.add(queued(f"t{number:02}"))
    await store.ask_cancel("t17", "", at(1))
    await store.add(replace(queued("stillborn"), cancel_requested=True))
    first = await store.claim(Lane.DISPATCH, "w1", 3, at(2), UNTIL)
    assert {task.id for task in first} == {"t17", "stillborn", "t00"}
    await store.add(queued("new", tenant="other"))
    after = await store.claim(Lane.DISPATCH, "w1", 3, at(2), UNTIL)
    assert "new" in [task.id for task in after]


async def test_the_first_of_each_line_is_woken_whoever_stands_before_it(store: Any):
    """CAP-11: by tenant, model and class of urgency; who is due already or looked a moment ago keeps its place."""
    for number in range(4):
        await parked(store, f"a{number}")
    await parked(store, "other-tenant", tenant="u")
    await parked(store, "other-class", priority="low")
    await parked(store, "other-model", model="still")
    await parked(store, "looked", tenant="v", looked=9)
    await parked(store, "behind", tenant="v", created=1)
    assert await store.wake(2, at(10), at(8)) == (3, True)
    assert await store.wake_lines(2, at(10), at(8), None) == (3, None)
    due = {task.id for task in await store.claim(Lane.DISPATCH, "w1", 99, at(10), at(25))}
    assert due == {"a0", "a1", "other-model", "other-tenant", "other-class", "behind"}
    assert await store.wake_lines(1, at(10), at(10), None) == (1, None)
    assert {task.id for task in await store.claim(Lane.DISPATCH, "w1", 99, at(10), at(25))} == {"looked"}


async def test_many_lines_are_woken_in_turn(pg_url: str):
    """CAP-11: a call looks at so many lines and goes on with the next ones, from the first again after the last."""
    async with opened(pg_url) as store:
        for number in range(LINES + 8):
            await parked(store, f"t{number:02}", tenant=f"tenant-{number:02}")
        woken, place = await store.wake_lines(4, at(10), at(10), None)
        assert (woken, place) == (LINES, ("clip", f"tenant-{LINES - 1:02}", 1))
        assert await store.wake_lines(4, at(10), at(10), place) == (8, None)


async def test_a_deadline_does_not_wait_for_its_turn(store: Any):
    """ATT-9, RUN-1a: who was never claimed is found when its deadline has passed, however many stand before it."""
    for number in range(20):
        await store.add(queued(f"t{number:02}"))
    await store.add(queued("short", deadline=at(5)))
    assert "short" not in {task.id for task in await store.claim(Lane.DISPATCH, "w1", 3, at(4), UNTIL)}
    late = await store.claim(Lane.DISPATCH, "w1", 2, at(6), UNTIL)
    assert {task.id for task in late} == {"short", "t03"}
    await store.add(queued("new", tenant="other"))
    assert "new" in {task.id for task in await store.claim(Lane.DISPATCH, "w1", 3, at(6), UNTIL)}


async def test_the_first_of_a_line_are_woken_by_when_they_are_due(store: Any):
    """PRIO-1: of each pick as many as asked for, those that got that decision alone; a deadline, a later stage and many
    that wait for it bring a Task forward, and what a release waits for is a line of its own."""
    await parked(store, "first", key="k")
    await parked(store, "deadline", key="k", deadline=at(600))
    await parked(store, "stage", key="k", terms=Terms(stage=1))
    await parked(store, "blocking", key="k", terms=Terms(blocking=7))
    await parked(store, "otherwise", key="o", deadline=at(500))
    await parked(store, "release", key="k", terms=Terms(blocks_release=True))
    await parked(store, "elsewhere", key="k", tenant="u")
    normal, release = ("clip", "t", CLASSES.index("normal")), ("clip", "t", CLASSES.index("release"))
    picks = [Pick(normal, "k", 3), Pick(release, "k", 2), Pick(normal, "nobody", 1)]
    assert list(await store.wake_first(picks, at(10))) == [3, 1, 0]
    due = {task.id for task in await store.claim(Lane.DISPATCH, "w1", 99, at(10), at(25))}
    assert due == {"deadline", "blocking", "stage", "release"}
    assert list(await store.wake_first(picks[:1], at(11))) == [1]


async def test_a_release_blocker_is_looked_at_early(store: Any):
    """PRIO-1, ATT-9: it enters a line of its own, and the backlog of its own tenant is not before it."""
    for number in range(20):
        await store.add(queued(f"t{number:02}"))
    await store.claim(Lane.DISPATCH, "w1", 3, at(1), UNTIL)
    await store.add(queued("release", priority="low", terms=Terms(blocks_release=True)))
    assert "release" in {task.id for task in await store.claim(Lane.DISPATCH, "w1", 2, at(1), UNTIL)}

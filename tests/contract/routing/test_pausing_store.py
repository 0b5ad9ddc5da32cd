"""The contract of `Pausing`: one suite, every implementation."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.routing.domain import transitions
from services.routing.domain.standing import findings, limits
from services.routing.domain.task import AttemptState, Task, TaskState
from services.routing.ports import Lane
from services.routing.ports.pausing import PAUSED
from services.routing.ports.standing import Part
from tests.contract.routing.tasks_stores import KINDS, at, opened, queued, to_submitting, write

END = at(9000)
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


async def due(store: Any, now: float, lane: Lane = Lane.DISPATCH) -> list[str]:
    """The ids that a claim takes."""
    return sorted(task.id for task in await store.claim(lane, "w2", 9, at(now), at(now + 15)))


async def claimed(store: Any, task_id: str = "t1") -> Task:
    """A new Task in the hands of a worker."""
    await store.add(queued(task_id))
    task: Task = await store.claim_one(task_id, "w1", at(1), UNTIL)
    return task


async def test_a_paused_task_is_not_claimed_whatever_it_waits_for(store: Any):
    """RUN-1a, RUN-8, ATT-7: never looked at, parked, or between two Attempts: no claim, no hint and no scan finds it
    before the end of its time, when it is claimed to be ended; the others of its line go on."""
    for name in ("fresh", "late", "other"):
        await store.add(queued(name))
    for name, reason, look in (("parked", "capacity: full", 1000), ("between", "retry: after 500", 3)):
        task = replace(await claimed(store, name), round_key="k")
        await store.save(write(task, transitions.waiting(task, reason, at(look))))
    await store.pause({"fresh": END, "parked": END, "between": END, "late": at(50), "nobody": END})
    assert await store.wake(9, at(10), at(10)) == (0, False)
    assert await due(store, 10) == ["other"]
    assert [(await store.get(name)).paused for name in ("fresh", "parked", "between", "other")] == [True] * 3 + [False]
    assert (await store.get("parked")).waiting_reason == "capacity: full"
    assert await due(store, 51) == ["late", "other"]
    await store.unpause(["fresh", "parked", "between", "nobody"], at(60))
    assert await due(store, 60) == ["between", "fresh", "parked"]


async def test_pausing_twice_changes_nothing(store: Any):
    """RUN-8: a repeated command is harmless, in either direction; each real change is a revision."""
    await store.add(queued("t1"))
    for _ in range(2):
        await store.pause({"t1": END})
    once = await store.get("t1")
    assert (once.paused, once.revision) == (True, 2)
    for _ in range(2):
        await store.unpause(["t1"], at(5))
    again = await store.get("t1")
    assert (again.paused, again.revision) == (False, 3)


async def test_the_intent_is_refused_once_a_task_is_paused(store: Any):
    """RUN-1a, ATT-5: the flag and the intent to submit exclude each other in one statement."""
    task = await claimed(store)
    await store.pause({"t1": END})
    with pytest.raises(Fault) as refused:
        await store.save(write(task, to_submitting(task), until=UNTIL, unless_stopped=True))
    assert (refused.value.code, refused.value.metadata) == ("conflict", PAUSED)
    assert (await store.get("t1")).attempts == ()
    asked = replace(task, paused=True)
    assert (await store.save(write(asked, transitions.held(asked, END)))).paused
    assert await due(store, 20) == []


async def test_an_attempt_that_began_before_is_followed(store: Any):
    """RUN-1a: paused after its intent, it is written down to its end and its polls are due as ever; what fails then
    waits in the queue until it may go on."""
    task = await claimed(store)
    sending = await store.save(write(task, to_submitting(task), until=UNTIL, unless_stopped=True))
    await store.pause({"t1": END})
    out = transitions.accepted(sending, sending.attempts[0], "job", at(2), at(10))
    running = await store.save(write(sending, out, now=2))
    assert (running.state, running.paused) == (TaskState.RUNNING, True)
    assert await due(store, 11, Lane.FOLLOW) == ["t1"]
    followed = await store.get("t1")
    ended = transitions.attempt_ended(followed, followed.attempts[0], AttemptState.FAILED, at(12), cost=None)
    await store.save(write(followed, transitions.requeued(ended, "retry: after 500", at(13)), now=12))
    again = await store.claim_one("t1", "w2", at(13), at(28))
    await store.save(write(again, transitions.held(again, END), now=13))
    assert await due(store, 40) == []
    await store.unpause(["t1"], at(41))
    assert await due(store, 41) == ["t1"]


async def test_what_a_worker_did_not_know_is_looked_at_at_once(store: Any):
    """RUN-8: a pause that came while somebody decided, and the end of one, make the Task due, whatever is written."""
    task = await claimed(store)
    await store.pause({"t1": END})
    parked = replace(task, round_key="k")
    saved = await store.save(write(parked, transitions.waiting(parked, "capacity: full", at(1000)), now=2))
    assert saved.paused
    assert await store.wake(9, at(2), at(2)) == (0, False)
    held = (await store.claim(Lane.DISPATCH, "w1", 1, at(2), UNTIL))[0]
    await store.unpause(["t1"], at(3))
    await store.save(write(held, transitions.held(held, END), now=4))
    free = (await store.claim(Lane.DISPATCH, "w1", 1, at(4), UNTIL))[0]
    assert not free.paused


async def test_a_cancel_ends_a_paused_task(store: Any):
    """ATT-8: it is due at once, and stays so when it is paused again."""
    await store.add(queued("t1"))
    await store.pause({"t1": END})
    await store.ask_cancel("t1", "", at(1))
    assert await due(store, 2) == ["t1"]
    await store.add(queued("t2"))
    await store.ask_cancel("t2", "", at(3))
    await store.pause({"t2": END})
    assert await due(store, 4) == ["t2"]


async def test_what_has_ended_is_not_paused(store: Any):
    """ATT-4: a Task that has ended stays as it is."""
    task = await claimed(store)
    ended = await store.save(write(task, transitions.cancelled(task, at(2))))
    await store.pause({"t1": END})
    assert await store.get("t1") == ended


async def test_a_paused_task_matches_one_predicate(store: Any):
    """ATT-7: it stands in no queue but has a time at which it is found, and sleeping until then is no finding."""
    for name in ("fresh", "looked"):
        await store.add(replace(queued(name), waiting_reason="queue: not yet looked at"))
    looked = await store.claim_one("looked", "w1", at(1), UNTIL)
    await store.save(write(looked, transitions.waiting(looked, "health: a open", at(1000))))
    await store.pause({"fresh": END, "looked": END})
    bounds = limits(at(20), 600)
    for part in (Part.QUEUED, Part.UNTIMED):
        suspects, _ = await store.suspects(part, None, 9, bounds)
        assert [item for item in suspects if findings(*item, bounds)] == []
    assert await store.heads(at(20), at(10)) == {}

"""The contract of `LateStore`: one suite, every implementation."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.kernel.money import Money
from services.routing.domain import transitions
from services.routing.domain.attempts import fault
from services.routing.domain.late import booked, heard, taken_after_all
from services.routing.domain.task import Artifact, Attempt, AttemptState, Task
from services.routing.ports.alerts import AlertQuery
from tests.contract.routing.tasks_stores import KINDS, alert, at, opened, queued, to_submitting, write

FAILURE = fault("submission_unresolved", "x", "unknown", "attempt")
FILM = Artifact("a" * 64, "video/mp4", 1000)


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest) -> str:
    """Where each implementation keeps its rows; a database of its own is only made for the one that needs it."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(address: str) -> AsyncIterator[Any]:
    """Each implementation in turn, empty."""
    async with opened(address) as made:
        yield made


async def ended(store: Any, task_id: str = "t1", look: float = 100) -> tuple[Task, Attempt]:
    """A Task that ended unresolved, and its Attempt, asked about at `look`."""
    await store.add(queued(task_id))
    task = await store.claim_one(task_id, "w", at(0), at(15))
    sent = to_submitting(task)
    doubted = transitions.uncertain(sent, sent.live, FAILURE, "uncertain: x", at(5))
    over = transitions.attempt_ended(
        doubted, doubted.live, AttemptState.UNRESOLVED, at(40), cost=None, failure=FAILURE, late_look=at(look)
    )
    saved = await store.save(write(task, transitions.failed(over, FAILURE, at(40))))
    return saved, saved.attempts[0]


async def test_what_is_due_is_taken_once_with_its_next_look(store: Any):
    """ATT-6: oldest first; before its next look no other process has it."""
    for number in range(5):
        await ended(store, f"t{number}", look=100 - number)
    assert await store.take_late(at(50), 10) == ()
    both = await asyncio.gather(store.take_late(at(99), 3), store.take_late(at(99), 3))
    taken = [attempt for part in both for attempt in part]
    assert sorted(attempt.task_id for attempt in taken) == ["t1", "t2", "t3", "t4"]
    assert {(attempt.late_looks, attempt.late_look_at) for attempt in taken} == {(1, at(99 + 120))}
    assert await store.take_late(at(99), 10) == ()
    assert [attempt.task_id for attempt in await store.take_late(at(100), 10)] == ["t0"]
    assert (await store.get("t0")).attempts[0].late_looks == 1


async def test_a_late_word_is_kept_whole(store: Any):
    """COST-12: outcome, artifacts, failure and both costs come back; spent and alerts are written with it, once."""
    task, before = await ended(store)
    said = ("succeeded", Money("CNY", Decimal("0.123456789")), (FILM,), None)
    after = heard(before, said, at(200), False, {})
    assert await store.book_late(booked(task, before, after), before, after, [alert("1", "k")])
    kept = await store.get("t1")
    assert (kept.attempts, kept.spent) == ((after,), Money("CNY", Decimal("0.123456789")))
    assert kept.revision == task.revision + 1
    assert kept.state is task.state
    again = heard(before, ("failed", None, (), FAILURE), at(300), True, {})
    assert not await store.book_late(booked(kept, before, again), before, again, [alert("2", "other")])
    assert await store.get("t1") == kept
    assert len((await store.alerts(AlertQuery()))[0]) == 1


async def test_two_words_at_once_are_one(store: Any):
    """COST-12, ATT-6: of an operator's and the provider's word the first is booked; money is counted once."""
    task, before = await ended(store)
    taken = taken_after_all(before, "job-1")
    words = [booked(task, before, taken) for _ in range(2)]
    done = await asyncio.gather(*(store.book_late(word, before, taken, ()) for word in words))
    assert sorted(done) == [False, True]
    assert (await store.get("t1")).spent == before.quote
    other, untouched = await ended(store, "t2")
    await store.correct(replace(untouched, resolution="not_accepted", cost=Money.zero("CNY")), other.spent)
    late = taken_after_all(untouched, "job-2")
    assert not await store.book_late(booked(other, untouched, late), untouched, late, ())


async def test_a_task_that_goes_on_is_written_by_its_claims_alone(store: Any):
    """ATT-7: no late word goes past a worker."""
    await store.add(queued("t1"))
    task = await store.claim_one("t1", "w", at(0), at(15))
    saved = await store.save(write(task, to_submitting(task)))
    before = saved.attempts[0]
    after = replace(before, cost=before.quote)
    assert not await store.book_late(booked(saved, before, after), before, after, ())
    assert (await store.get("t1")).attempts == (before,)

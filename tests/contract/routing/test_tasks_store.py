"""The contract of `TaskStore`: one suite, every implementation."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.store.upgrading import differences
from services.routing.domain import transitions
from services.routing.domain.attempts import fault
from services.routing.domain.request import Terms
from services.routing.domain.rounds import RoundOutcome, RoundQuery, SelectionRound
from services.routing.domain.task import Artifact, AttemptState, Result, TaskState
from services.routing.ports import Lane, TaskQuery
from services.routing.store.tasks_tables import metadata
from tests.contract.routing.tasks_stores import (
    KINDS,
    SCHEMA,
    at,
    attempt,
    opened,
    queued,
    to_submitting,
    write,
)
from tests.unit.routing.dispatch_fakes import stage

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


async def claimed(store: Any, task_id: str = "t1", **request: Any) -> Any:
    """A new Task in the hands of a worker."""
    await store.add(queued(task_id, **request))
    task = await store.claim_one(task_id, "w1", at(0), UNTIL)
    assert task is not None
    return task


async def test_runs_are_counted_for_quotas(store: Any):
    """AUTH-2: Runs with providers by tenant, and those that wait and are not there; a Task alone is its own Run."""
    for task_id, run_id in (("t1", "A"), ("t2", "A"), ("t3", "B"), ("t4", "C"), ("t5", "")):
        await store.add(replace(queued(task_id), run_id=run_id))
    await store.add(replace(queued("u1", tenant="u"), run_id="D"))
    assert await store.runs_at_providers(["t", "u"]) == []
    assert await store.waiting_runs("t", 9) == 4
    assert await store.waiting_runs("t", 3) == 3
    for task_id in ("t1", "t5", "u1"):
        task = await store.claim_one(task_id, "w1", at(0), UNTIL)
        assert task is not None
        await store.save(write(task, to_submitting(task)))
    assert await store.runs_at_providers(["t", "u", "nobody"]) == [("t", "A"), ("t", "t5"), ("u", "D")]
    assert await store.runs_at_providers(["u"]) == [("u", "D")]
    assert await store.waiting_runs("t", 9) == 2


async def test_terms_are_kept(store: Any):
    """HUMAN-2, COST-9: a Task's terms come back as they were, and a Task without any has none."""
    terms = Terms(supply="a/clip", max_attempts=1, hold="h1")
    await store.add(queued("t1", terms=terms))
    await store.add(queued("t2"))
    assert ((await store.get("t1")).request.terms, (await store.get("t2")).request.terms) == (terms, None)


async def test_a_task_may_be_kept_with_its_cancel(store: Any):
    """ATT-8: the flag is there from the first moment, and the queue hands the Task out with it."""
    await store.add(replace(queued("t1"), cancel_requested=True, cancel_reason="withdrawn"))
    (task,) = await store.claim(Lane.DISPATCH, "w1", 5, at(0), UNTIL)
    assert (task.cancel_requested, task.cancel_reason) == (True, "withdrawn")
    saved = await store.save(write(task, transitions.cancelled(task, at(1))))
    assert saved.state is TaskState.CANCELLED


async def test_a_task_is_kept_whole(store: Any):
    """CAT-2: every field of a Task and its Attempts comes back as it went in."""
    task = await claimed(store, deadline=at(900), priority="high", billing_mode="per_second", degradation="strict")
    saved = await store.save(write(task, to_submitting(task)))
    taken = transitions.accepted(saved, saved.attempts[0], "job-1", at(3), at(5))
    saved = await store.save(write(saved, taken))
    failure = fault("provider_error", "it\x00 failed", "supply", "supply", True)
    done = transitions.attempt_ended(
        saved, saved.attempts[0], AttemptState.SUCCEEDED, at(6), cost=saved.attempts[0].quote, report=True
    )
    film = Artifact("a" * 64, "video/mp4", 12)
    result = Result((film,), {"text": "a\x00b"}, {"seconds": 5}, "r933-900", "933", "900", ("reference_videos",))
    task = await store.claim_one("t1", "w1", at(20), at(35))
    await store.save(write(task, replace(transitions.succeeded(done, result, at(6)), failure=failure)))
    kept = await store.get("t1")
    assert kept.state is TaskState.SUCCEEDED
    assert kept.request == queued("t1", deadline=at(900), priority="high", billing_mode="per_second",
                                  degradation="strict").request  # fmt: skip
    assert kept.attempts[0] == replace(done.attempts[0])
    assert kept.spent == done.spent
    assert kept.result.artifacts == (film,)
    assert kept.result.dropped_inputs == ("reference_videos",)
    assert kept.failure.code == "provider_error"
    assert kept.finished_at == at(6)


async def test_the_trace_that_handed_a_task_over_stays_with_it(store: Any):
    """OPS-5: from its addition through claims and writes, and whoever adds it again."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await store.add(replace(queued("t1"), traceparent=trace))
    assert (await store.add(queued("t1"))).traceparent == trace
    (task,) = await store.claim(Lane.DISPATCH, "w1", 1, at(1), at(30))
    saved = await store.save(write(task, to_submitting(task)))
    assert {task.traceparent, saved.traceparent, (await store.get("t1")).traceparent} == {trace}
    assert (await store.add(queued("t2"))).traceparent == ""


async def test_adding_twice_is_one_task(store: Any):
    """ATT-9: the id is the caller's; a repeated submission finds the Task that stands."""
    first = await claimed(store)
    again = await store.add(queued("t1", created=99))
    assert again.epoch == first.epoch
    assert again.created_at == at(0)
    assert await store.get("nobody") is None


async def test_a_repeated_submission_is_the_same_whatever_the_store_makes_of_its_numbers(store: Any):
    """ATT-9: a number beyond 2**53, as JSON over the wire brings it, is spelled otherwise where it is kept."""
    play = stage(store=store)
    given = {"prompt": "a boat", "duration_s": 5.0, "seed": 1.2345678901234568e16}
    first = await play.submit(input=given)
    assert (await play.submit(input=given)).id == first.id
    with pytest.raises(Fault) as other:
        await play.submit(input={**given, "seed": 7.0})
    assert other.value.code == "idempotency_conflict"


async def test_a_write_of_an_older_claim_changes_nothing(store: Any):
    """ATT-7: once another worker has taken the Task over, the epoch of the first matches no row."""
    old = await claimed(store)
    new = (await store.claim(Lane.DISPATCH, "w2", 5, at(16), at(31)))[0]
    assert new.epoch == old.epoch + 1
    with pytest.raises(Fault) as refused:
        await store.save(write(old, to_submitting(old)))
    assert refused.value.code == "fenced"
    kept = await store.get("t1")
    assert kept.attempts == ()
    assert kept.state is TaskState.QUEUED
    await store.save(write(new, to_submitting(new)))
    assert (await store.get("t1")).attempts[0].epoch == new.epoch


async def test_what_has_ended_stays_as_it_is(store: Any):
    """ATT-4: a terminal Task takes no write, no claim, no cancel and no wake."""
    task = await claimed(store)
    ended = await store.save(write(task, transitions.cancelled(task, at(1))))
    with pytest.raises(Fault) as refused:
        await store.save(write(ended, transitions.waiting(ended, "queue", at(2))))
    assert refused.value.code == "fenced"
    assert await store.claim_one("t1", "w2", at(60), at(75)) is None
    assert await store.claim(Lane.DISPATCH, "w2", 5, at(60), at(75)) == ()
    asked = await store.ask_cancel("t1", "too late", at(60))
    assert asked.state is TaskState.CANCELLED
    assert not asked.cancel_requested
    assert asked.revision == ended.revision


async def test_no_task_goes_to_two_claimers(store: Any):
    """ATT-7: workers that claim at once share the Tasks out, each to one of them."""
    for number in range(40):
        await store.add(queued(f"t{number:02}"))
    shares = await asyncio.gather(*(store.claim(Lane.DISPATCH, f"w{number}", 10, at(1), UNTIL) for number in range(8)))
    ids = [task.id for share in shares for task in share]
    assert len(ids) == len(set(ids))
    while more := await store.claim(Lane.DISPATCH, "w9", 10, at(1), UNTIL):
        ids += [task.id for task in more]
    assert sorted(ids) == [f"t{number:02}" for number in range(40)]


async def test_only_what_is_due_is_claimed_and_a_dead_claim_lapses(store: Any):
    """ATT-7, ATT-9: `next_action_at` and the claim's end decide, both durable; lanes hold different states."""
    task = await claimed(store)
    await store.save(write(task, transitions.waiting(task, "capacity: full", at(5))))
    assert await store.claim(Lane.DISPATCH, "w1", 5, at(4), at(19)) == ()
    assert await store.claim(Lane.FOLLOW, "w1", 5, at(6), at(21)) == ()
    taken = (await store.claim(Lane.DISPATCH, "w1", 5, at(6), at(21)))[0]
    assert await store.claim(Lane.DISPATCH, "w2", 5, at(20), at(35)) == ()
    sending = await store.save(write(taken, to_submitting(taken), now=7, until=at(21)))
    assert await store.claim(Lane.FOLLOW, "w2", 5, at(20), at(35)) == ()
    over = (await store.claim(Lane.FOLLOW, "w2", 5, at(22), at(37)))[0]
    assert over.epoch == sending.epoch + 1
    assert over.attempts[0].state is AttemptState.SUBMITTING


async def test_a_claim_that_a_write_keeps_is_counted_from_the_write(store: Any):
    """ATT-5, ATT-7: whoever writes the intent late, yet before anybody took over, holds the Task while it submits."""
    task = await claimed(store)
    await store.save(write(task, to_submitting(task), now=20, until=at(35)))
    assert await store.claim(Lane.FOLLOW, "w2", 5, at(34), at(49)) == ()
    assert (await store.claim(Lane.FOLLOW, "w2", 5, at(36), at(51)))[0].id == "t1"


async def test_claims_are_prolonged_by_their_epoch(store: Any):
    """ATT-7: a living worker keeps its claims; one that was taken over is told so."""
    task = await claimed(store)
    assert await store.prolong([("t1", task.epoch)], at(40)) == frozenset()
    assert await store.claim(Lane.DISPATCH, "w2", 5, at(39), at(54)) == ()
    assert (await store.claim(Lane.DISPATCH, "w2", 5, at(41), at(56)))[0].id == "t1"
    assert await store.prolong([("t1", task.epoch), ("gone", 1)], at(90)) == {"t1", "gone"}


async def test_a_claim_that_was_given_back_is_not_prolonged(store: Any):
    """ATT-7: the step that still tidies up after its last write neither loses the Task nor takes it again."""
    task = await claimed(store)
    await store.save(write(task, transitions.waiting(task, "capacity: full", at(5))))
    assert await store.prolong([("t1", task.epoch)], at(90)) == frozenset()
    assert (await store.claim(Lane.DISPATCH, "w2", 5, at(6), at(21)))[0].id == "t1"


async def test_the_intent_is_refused_once_a_cancel_was_asked_for(store: Any):
    """ATT-8: the flag and the intent to submit exclude each other in one statement."""
    task = await claimed(store)
    await store.ask_cancel("t1", "changed my mind", at(1))
    with pytest.raises(Fault) as refused:
        await store.save(write(task, to_submitting(task), until=UNTIL, unless_stopped=True))
    assert refused.value.code == "cancelled"
    kept = await store.get("t1")
    assert (kept.cancel_requested, kept.cancel_reason, kept.attempts) == (True, "changed my mind", ())


async def test_a_cancel_in_between_makes_the_task_due_at_once(store: Any):
    """ATT-8: a worker that did not see the flag cannot put the Task off, nor take the flag away."""
    task = await claimed(store)
    await store.ask_cancel("t1", "", at(1))
    saved = await store.save(write(task, transitions.waiting(task, "health: open", at(500)), now=2))
    assert saved.cancel_requested
    assert (await store.claim(Lane.DISPATCH, "w1", 1, at(2), UNTIL))[0].cancel_requested


async def test_a_task_never_has_two_live_attempts(store: Any):
    """SEL-25: neither the value nor, in PostgreSQL, the index admits a second one."""
    task = await claimed(store)
    saved = await store.save(write(task, to_submitting(task), until=UNTIL))
    with pytest.raises(transitions.IllegalMove):
        transitions.with_attempt(saved, attempt(saved, 2))
    if not hasattr(store, "_database"):
        return
    forged = replace(saved, attempts=(*saved.attempts, attempt(saved, 2, state=AttemptState.ACCEPTED)))
    with pytest.raises(Fault) as refused:
        await store.save(write(saved, forged))
    assert refused.value.metadata["constraint"] == "attempts_live"


async def test_rounds_are_appended(store: Any):
    """SEL-17: every round stays, in order, byte for byte."""
    task = await claimed(store)
    first = SelectionRound("t1", 1, at(1), RoundOutcome.REFUSED, '{"b":1,"a":"\\u00e9 2.50"}', "supply a full")
    second = SelectionRound("t1", 2, at(2), RoundOutcome.WAITING, "{}")
    saved = await store.save(write(task, replace(task, rounds=1), rounds=(first,), until=UNTIL))
    await store.save(write(saved, replace(saved, rounds=2), rounds=(second,)))
    assert await store.rounds("t1") == (first, second)
    assert (await store.get("t1")).rounds == 2
    assert await store.rounds("nobody") == ()


async def test_leases_of_live_attempts_are_known_to_every_process(store: Any):
    """CAP-2: whoever renews finds the leases of all Attempts that have not ended, and no others."""
    task = await claimed(store)
    saved = await store.save(write(task, to_submitting(task), until=UNTIL))
    assert await store.live_leases() == ("t1-a1",)
    ended = transitions.attempt_ended(saved, saved.attempts[0], AttemptState.FAILED, at(3), cost=Money.zero("CNY"))
    await store.save(write(saved, transitions.requeued(ended, "retry", at(3))))
    assert await store.live_leases() == ()


async def test_outcomes_are_owed_until_they_are_acknowledged(store: Any):
    """HLT-13: the debt is durable, oldest end first, and a repeated acknowledgement is harmless."""
    for task_id, end in (("t1", 9), ("t2", 5)):
        task = await claimed(store, task_id)
        saved = await store.save(write(task, to_submitting(task), until=UNTIL))
        ended = transitions.attempt_ended(
            saved, saved.attempts[0], AttemptState.FAILED, at(end), cost=Money.zero("CNY"), report=True
        )
        await store.save(write(saved, transitions.requeued(ended, "retry", at(end))))
    assert [item.id for item in await store.unreported(10)] == ["t2-a1", "t1-a1"]
    await store.reported(["t2-a1"])
    await store.reported(["t2-a1"])
    assert [item.id for item in await store.unreported(10)] == ["t1-a1"]
    held = await store.claim_one("t1", "w2", at(20), at(35))
    await store.reported(["t1-a1"])
    await store.save(write(held, transitions.waiting(held, "capacity: full", at(30))))
    assert await store.unreported(10) == ()  # a holder that read it before does not bring it back


async def test_tasks_are_found_by_id_state_tenant_and_doubt(store: Any):
    """ATT-6: pages are oldest first and complete; the filter for operators names uncertain and unresolved Attempts."""
    for number in range(5):
        await store.add(queued(f"t{number}", created=number, tenant="x" if number % 2 else "y"))
    page, token = await store.find(TaskQuery(page_size=2))
    rest, end = await store.find(TaskQuery(page_size=3, page_token=token))
    assert [task.id for task in (*page, *rest)] == ["t0", "t1", "t2", "t3", "t4"]
    assert end == ""
    assert [task.id for task in (await store.find(TaskQuery(tenant="x")))[0]] == ["t1", "t3"]
    assert [task.id for task in (await store.find(TaskQuery(task_ids=("t3", "t0", "no"))))[0]] == ["t0", "t3"]
    task = await store.claim_one("t4", "w1", at(9), UNTIL)
    saved = await store.save(write(task, to_submitting(task), until=UNTIL))
    unknown = fault("submission_unknown", "lost", "unknown", "attempt")
    lost = transitions.uncertain(saved, saved.attempts[0], unknown, "uncertain: lost", at(20))
    saved = await store.save(write(saved, lost, until=UNTIL))
    assert [task.id for task in (await store.find(TaskQuery(uncertain=True)))[0]] == ["t4"]
    over = transitions.attempt_ended(saved, saved.attempts[0], AttemptState.UNRESOLVED, at(30), cost=None)
    saved = await store.save(write(saved, transitions.failed(over, unknown, at(30))))
    assert [task.id for task in (await store.find(TaskQuery(states=("failed",), uncertain=True)))[0]] == ["t4"]
    word = replace(saved.attempts[0], resolution="accepted", cost=saved.attempts[0].quote, provider_task_id="j")
    booked = await store.correct(word, saved.spent + word.quote)
    with pytest.raises(Fault) as late:
        await store.correct(replace(word, resolution="not_accepted", cost=saved.spent), saved.spent)
    assert late.value.code == "conflict"
    assert (await store.get("t4")).spent == word.quote
    assert booked.spent == word.quote
    assert booked.state is TaskState.FAILED
    assert (await store.find(TaskQuery(uncertain=True)))[0] == ()
    assert (await store.of_attempt("t4-a1")).id == "t4"
    assert await store.of_attempt("nobody") is None
    assert [await store.of_job(*job) for job in (("a", "j"), ("b", "j"), ("a", "k"))] == ["t4-a1", None, None]
    with pytest.raises(Fault) as refused:
        await store.find(TaskQuery(page_token="nonsense"))
    assert refused.value.code == "malformed_request"


async def test_rounds_are_a_history(store: Any):
    """SEL-23: rounds of all Tasks by time, Task and number, in pages; bounded by times and model; none is missed."""
    for number, model in enumerate(("clip", "clip", "other")):
        task = await claimed(store, f"t{number}", model=model)
        kept = tuple(
            SelectionRound(task.id, place, at(place), RoundOutcome.WAITING, "{}", f"{number}") for place in (1, 2, 3)
        )
        await store.save(write(task, transitions.waiting(task, "capacity: full", at(9)), rounds=kept))
    whole = RoundQuery(at(2), at(4), count=100)
    found = await store.decided(whole)
    assert [(item.round, item.task_id) for item in found] == [(n, f"t{t}") for n in (2, 3) for t in range(3)]
    assert found[0] == (await store.rounds("t0"))[1]
    assert await store.count_decided(whole) == 6
    pages: list[SelectionRound] = []
    after = None
    while page := await store.decided(replace(whole, count=4, after=after)):
        pages += page
        after = (page[-1].decided_at, page[-1].task_id, page[-1].round)
    assert tuple(pages) == found
    assert {item.task_id for item in await store.decided(replace(whole, model="other"))} == {"t2"}
    assert await store.count_decided(replace(whole, model="other", after=after, count=1)) == 2
    assert await store.decided(RoundQuery(at(4), at(9))) == ()


async def test_the_tables_are_what_the_migrations_make(pg_url: str):
    """OPS-7: the declared tables and the migrated schema do not drift apart."""
    async with opened(pg_url):
        named = set(metadata.tables)
        found = await differences(pg_url, schema=SCHEMA, metadata=metadata)
    assert [item for item in found if _table_of(item) in named] == []


def _table_of(difference: Any) -> str:
    """The table that Alembic speaks of."""
    if isinstance(difference, list):
        return _table_of(difference[0])
    thing = difference[1] if difference[0] in ("add_table", "remove_table", "add_index", "remove_index") else None
    if thing is not None:
        return getattr(getattr(thing, "table", None), "name", None) or getattr(thing, "name", "")
    return next((part for part in difference[2:] if isinstance(part, str)), "")

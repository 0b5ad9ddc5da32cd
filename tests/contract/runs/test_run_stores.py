"""Every store of Runs keeps the same contract."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from libs.faults.fault import Fault
from libs.store.migrations import migrate
from libs.store.upgrading import differences
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.domain import hearing
from services.runs.domain.desks import DeskChanges
from services.runs.domain.history import applied
from services.runs.domain.memos import Memo
from services.runs.domain.plan import MAIN
from services.runs.domain.run import (
    Artifact,
    Decision,
    Draft,
    Due,
    Failure,
    Node,
    Order,
    Question,
    Raising,
    Reserved,
    Result,
    Run,
    RunState,
)
from services.runs.ports import Runs
from services.runs.store.tables import metadata
from tests.support.worlds import START

NOTHING = DeskChanges()


def new_run(run_id: str, tenant: str = "a", **labels: str) -> Run:
    """A Run as it is created."""
    order = Order("clip", {"prompt": "x", "duration_s": 5}, deadline=START)
    node = Node(MAIN, "generate", f"task-{run_id}")
    return Run(run_id, tenant, RunState.PENDING, order, {MAIN: node}, START, labels=labels)


def asked(question_id: str, claimed_at: datetime | None = None) -> Question:
    """A question about the only node."""
    until = START + timedelta(hours=4)
    return Question(
        question_id, MAIN, "gate", "Is it good?", "it is there", "h", (Decision.APPROVE, Decision.STOP), until, "lead",
        "rest", START, 14_400.0, claimed_at=claimed_at,
    )  # fmt: skip


async def add(runs: Runs, run: Run, key: str = "", fingerprint: str = "f") -> tuple[Run, bool]:
    """Keep it with its first event."""
    return await runs.add(run, hearing.created(run), key, fingerprint, START)


async def test_a_run_comes_back_as_it_was(runs: Runs) -> None:
    """EVENT-1: the Run and its first event are kept together; what is read equals what was written."""
    kept, replayed = await add(runs, new_run("r1", project="x"))
    assert not replayed
    assert kept.last_sequence == 1
    assert await runs.get("r1") == kept
    assert [(event.sequence, event.kind) for event in await runs.events("r1", 0, 10)] == [(1, "run_created")]
    assert await runs.get("r2") is None


async def test_every_field_survives(runs: Runs) -> None:
    """RUN-1, COST-10: failure, result and usage are read as they were written; so are questions that wait for minutes
    of a reviewer, and minutes that are held."""
    kept, _ = await add(runs, new_run("r1"))
    failure = Failure("supply", "channel", True, "key_invalid", "revoked")
    full = replace(
        kept,
        state=RunState.FAILED,
        failure=failure,
        nodes={MAIN: replace(kept.node, failure=failure, attempts={"a": "failed"}, results={"h": Result()})},
        result=Result(degraded=True, dropped_inputs=("x",), output={"n": 1}),
        raising=(Raising("q", MAIN, "b", "attempts", {"attempts": 9}, "lena", "worth it"),),
        started_at=START,
        finished_at=START,
        questions={"q1": asked("q1", claimed_at=START)},
        due={"q2": Due(asked("q2"), 10, "budget-minutes:film")},
        reserved={"q1": Reserved("review:q1", MAIN, 10), "q0": Reserved("review:q0", MAIN, 10, 3)},
        review_minutes=3,
    )
    saved = await runs.save(full, [], START, NOTHING)
    assert saved == replace(full, revision=2)
    assert await runs.get("r1") == saved


async def test_a_slower_writer_writes_nothing(runs: Runs) -> None:
    """EVENT-1: of two writers that read one revision, one wins; the other leaves neither state nor events."""
    kept, _ = await add(runs, new_run("r1"))
    drafts = [Draft("run_started"), Draft("node_ready", {"node": MAIN}), Draft("node_started", {"node": MAIN})]
    started = applied(kept, drafts, START)
    first, second = await asyncio.gather(
        runs.save(started, drafts, START, NOTHING), runs.save(started, drafts, START, NOTHING)
    )
    assert sorted([first is None, second is None]) == [False, True]
    events = await runs.events("r1", 0, 100)
    assert [event.sequence for event in events] == [1, 2, 3, 4]


async def test_events_are_read_after_a_cursor(runs: Runs) -> None:
    """EVENT-1: sequences start at 1 and rise by 1; a page begins right after the cursor."""
    kept, _ = await add(runs, new_run("r1"))
    await runs.save(kept, [Draft("node_waiting", {"n": n}) for n in range(5)], START, NOTHING)
    page = await runs.events("r1", 2, 3)
    assert [event.sequence for event in page] == [3, 4, 5]
    assert await runs.last_sequences(["r1", "none"]) == {"r1": 6}


async def test_one_key_is_one_run(runs: Runs) -> None:
    """IDEM-1: ten creates with one key are one Run; another body is a conflict; another tenant is another key."""
    answers = await asyncio.gather(*(add(runs, new_run(f"r{n}"), key="k") for n in range(10)))
    assert len({run.id for run, _ in answers}) == 1
    assert sum(not replayed for _, replayed in answers) == 1
    with pytest.raises(Fault) as caught:
        await add(runs, new_run("other"), key="k", fingerprint="g")
    assert caught.value.code == "idempotency_conflict"
    foreign, replayed = await add(runs, new_run("foreign", tenant="b"), key="k")
    assert (foreign.id, replayed) == ("foreign", False)


async def test_a_key_finds_its_run(runs: Runs) -> None:
    """IDEM-1: a key is looked up without writing; another body is a conflict, another tenant's key is another key."""
    assert await runs.find_by_key("a", "k", "f") is None
    kept, _ = await add(runs, new_run("r1"), key="k", fingerprint="f")
    assert await runs.find_by_key("a", "k", "f") == kept
    assert await runs.find_by_key("a", "k", "") == kept
    assert await runs.find_by_key("b", "k", "f") is None
    with pytest.raises(Fault) as caught:
        await runs.find_by_key("a", "k", "g")
    assert caught.value.code == "idempotency_conflict"


async def test_pages_are_the_tenants_own(runs: Runs) -> None:
    """AUTH-1: a page holds the tenant's Runs alone, newest first, by state and label; without a tenant it is for
    operators, and holds everybody's."""
    for number in range(4):
        await add(runs, new_run(f"r{number}", project="x" if number % 2 else "y"))
    await add(runs, new_run("s1", tenant="b", project="x"))
    assert [run.id for run in await runs.page("a", [], None, "", 3)] == ["r3", "r2", "r1"]
    assert [run.id for run in await runs.page("a", [], None, "r1", 3)] == ["r0"]
    assert [run.id for run in await runs.page("a", [], ("project", "x"), "", 9)] == ["r3", "r1"]
    assert [run.id for run in await runs.page("a", [], ("project", None), "", 9)] == ["r3", "r2", "r1", "r0"]
    assert await runs.page("a", [RunState.SUCCEEDED], None, "", 9) == []
    assert [run.id for run in await runs.page("", [], None, "", 9)] == ["s1", "r3", "r2", "r1", "r0"]
    assert [run.id for run in await runs.page("", [RunState.PENDING], ("project", "x"), "s1", 9)] == ["r3", "r1"]


async def test_live_runs_are_the_work_of_the_ticks(runs: Runs) -> None:
    """ATT-7: whatever process asks finds every Run that is not at rest, oldest first."""
    for number in range(3):
        await add(runs, new_run(f"r{number}"))
    first = await runs.get("r0")
    assert first is not None
    drafts = [Draft("run_cancelled", {"cost": None, "error": None})]
    await runs.save(applied(first, drafts, START), drafts, START, NOTHING)
    whole = replace(new_run("p1"), traceparent="00-trace-span-01", production={"production": "p", "nodes": []})
    await add(runs, whole)
    assert await runs.revisions([RunState.PENDING], "", 10, productions=False) == {"r1": 1, "r2": 1}
    assert await runs.revisions([RunState.PENDING], "r1", 10, productions=False) == {"r2": 1}
    assert list(await runs.revisions([RunState.PENDING], "", 1, productions=False)) == ["r1"]
    assert await runs.revisions([RunState.PENDING], "", 10, productions=True) == {"p1": 1}
    second = await runs.get("r2")
    assert second is not None
    await runs.save(applied(second, [Draft("run_started")], START), [Draft("run_started")], START, NOTHING)
    assert await runs.revisions([RunState.PENDING, RunState.RUNNING], "", 9, productions=False) == {"r1": 1, "r2": 2}
    several = await runs.several(["p1", "none", "r0"])
    assert [(run.id, run.state) for run in several] == [("p1", RunState.PENDING), ("r0", RunState.CANCELLED)]
    assert several[0] == replace(whole, last_sequence=1)


async def test_a_memo_is_another_runs_of_the_same_tenant(runs: Runs) -> None:
    """RUN-5: written with the event that makes it, found by others of the tenant, the newest one; forgotten when it is
    taken back; a slower writer writes none."""
    for number in range(3):
        await add(runs, new_run(f"r{number}"))
    made = Result((Artifact("a" * 64, "image/png", 7),), output={"seed": 3}, degraded=True, dropped_inputs=("x",))
    first, second = Memo("a", "h", "r0", "main", made), Memo("a", "h", "r1", "main", Result())
    for memo in (first, second):
        kept = await runs.get(memo.run_id)
        assert kept is not None
        assert await runs.save(kept, [Draft("told")], START, DeskChanges(memos=(memo,))) is not None
        assert await runs.memo("a", "h", "r2") == memo
    assert await runs.save(kept, [Draft("told")], START, DeskChanges(memos=(first,))) is None
    assert await runs.memo("a", "h", "r1") is None
    assert await runs.memo("b", "h", "") is None
    assert await runs.memo("a", "other", "") is None
    third = await runs.get("r2")
    assert third is not None
    await runs.save(third, [Draft("told")], START, DeskChanges(forgotten=("h", "never there")))
    assert await runs.memo("a", "h", "") is None


async def ended(runs: Runs, run_id: str, kind: str, at: datetime) -> None:
    """A Run of three events, the last of which is its end."""
    kept, _ = await add(runs, new_run(run_id))
    drafts = [Draft("run_started"), Draft(kind, {"cost": None, "error": None})]
    await runs.save(applied(kept, drafts, at), drafts, at, NOTHING)


async def test_old_histories_are_forgotten_but_for_their_end(runs: Runs) -> None:
    """SSE-5: of Runs that ended before a time the last event stays; the Run, its numbering, and whatever is live, newer
    or a case file (DLQ-1) are untouched; a redriven one goes on with the next number and is pruned again."""
    later = START + timedelta(days=30)
    for run_id, kind, at in (
        ("r1", "run_completed", START),
        ("r2", "run_cancelled", START),
        ("r3", "run_dead_lettered", START),
        ("r4", "run_completed", later),
    ):
        await ended(runs, run_id, kind, at)
    await add(runs, new_run("r5"))
    before = await runs.get("r1")
    assert before is not None
    assert await runs.prune(START + timedelta(seconds=1), 1) == 1
    assert await runs.prune(START + timedelta(seconds=1), 9) == 1
    assert await runs.prune(START + timedelta(seconds=1), 9) == 0
    kept = {
        name: [event.sequence for event in await runs.events(name, 0, 9)] for name in ("r1", "r2", "r3", "r4", "r5")
    }
    assert kept == {"r1": [3], "r2": [3], "r3": [1, 2, 3], "r4": [1, 2, 3], "r5": [1]}
    assert await runs.get("r1") == before
    drafts = [Draft("told"), Draft("run_completed", {"cost": None, "error": None})]
    await runs.save(before, drafts, START, NOTHING)
    assert [event.sequence for event in await runs.events("r1", 0, 9)] == [3, 4, 5]
    assert await runs.prune(later, 9) == 1
    assert [event.sequence for event in await runs.events("r1", 0, 9)] == [5]


async def test_silent_runs_are_found(runs: Runs) -> None:
    """RUN-6: live Runs whose newest event is older than a moment, oldest first, page by page; no paused and no ended
    ones."""
    later = START + timedelta(minutes=20)
    for run_id in ("r1", "r2", "r3", "r5"):
        await add(runs, new_run(run_id))
    await ended(runs, "r4", "run_completed", START)
    for run_id, kind, at in (("r3", "run_paused", START), ("r5", "run_started", later)):
        kept = await runs.get(run_id)
        assert kept is not None
        drafts = [Draft(kind)]
        await runs.save(applied(kept, drafts, at), drafts, at, NOTHING)
    assert await runs.silent(later, "", 9) == {"r1": 1, "r2": 1}
    assert await runs.silent(later, "", 1) == {"r1": 1}
    assert await runs.silent(later, "r1", 9) == {"r2": 1}
    assert await runs.silent(START, "", 9) == {}


async def test_histories_are_of_runs_created_since(runs: Runs) -> None:
    """SLO-1: the events of some kinds, Run by Run, of the newest Runs at most; not of older and of pruned ones, nor of
    those behind which newer ones have very many."""
    for run_id in ("r1", "r2", "r3"):
        await ended(runs, run_id, "run_completed", START)
    kinds = ("run_created", "run_completed")
    found = await runs.histories(START, kinds, 9, 99)
    assert [[(event.run_id, event.kind) for event in events] for events in found] == [
        [(run_id, kind) for kind in kinds] for run_id in ("r1", "r2", "r3")
    ]
    assert [events[0].run_id for events in await runs.histories(START, kinds, 2, 99)] == ["r2", "r3"]
    for most_events, names in ((1, ["r3"]), (3, ["r3"]), (4, ["r2", "r3"]), (7, ["r1", "r2", "r3"])):
        assert [events[0].run_id for events in await runs.histories(START, kinds, 9, most_events)] == names
    assert await runs.histories(START + timedelta(seconds=1), kinds, 9, 99) == []
    await runs.prune(START + timedelta(seconds=1), 1)
    assert [events[0].run_id for events in await runs.histories(START, kinds, 9, 99)] == ["r2", "r3"]


async def test_migrations_say_what_the_tables_are(pg_url: str) -> None:
    """OPS-7: the migrated schema and the declared tables are the same."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    assert await differences(pg_url, schema=SCHEMA, metadata=metadata) == []

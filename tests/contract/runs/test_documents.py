"""What stands beside the events of a Run tells what they tell, however it is written."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import select

from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.migrations import migrate
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.domain.history import applied
from services.runs.domain.run import Artifact, Draft, Failure, Hold, Node, NodeState, Order, Result, Run, RunState
from services.runs.ports import Runs
from services.runs.store.codec import run_from_document
from services.runs.store.following import MOST_BEHIND, SMALL
from services.runs.store.postgres import PostgresRuns
from services.runs.store.tables import runs as table
from tests.contract.runs.test_run_stores import NOTHING, add, new_run
from tests.support.worlds import START, CountedIds


def touched(node: Node) -> Node:
    """One that differs from a new one in everything."""
    made = (Artifact("a" * 64, "image/png", 7),)
    failure, money = Failure("supply", "channel", True, "key_invalid", "revoked"), Money("CNY", Decimal("100"))
    return replace(
        node,
        state=NodeState.STALE, waiting_reason="why", artifacts=made, failure=failure, attempts={"a": "failed"},
        parent="frames", shot_class="action", item={"n": 1}, items=("frames/1",), released=("action",), tries=1,
        attempts_made=2, allowance=1, input={"prompt": "日の出", "n": [1.5, None, True]}, input_hash="h", steered=1,
        changes={"prompt": "x"}, supply="b/two", hold=Hold("h", "b", money, 2, money, 1), refused=True,
        refused_by="b:x", lacks={"cost": "1"}, fewer=True, cost=money, made=made,
        results={"h": Result(made, {"seed": 3}, True)},
        failures=(failure,), forgiven=1, task_ids=("t",), retry_at=START, began_at=START, started_at=START,
        finished_at=START + timedelta(microseconds=1),
    )  # fmt: skip


async def test_everything_that_a_node_is_survives(runs: Runs) -> None:
    """RUN-4: a node in which everything has happened, and one in which nothing has, are read as they were written."""
    whole, new = touched(Node("film", "generate", "task")), Node("end", "gate")
    assert [name for name in Node.__slots__ if getattr(whole, name) == getattr(Node("", ""), name)] == []
    run = replace(new_run("r1"), nodes={"film": whole, "end": new})
    await add(runs, run)
    assert await runs.get("r1") == replace(run, last_sequence=1)


def large(run_id: str) -> Run:
    """One whose document does not follow each of its events."""
    nodes = {f"n{number}": Node(f"n{number}", "generate") for number in range(SMALL + 1)}
    made = {"production": "p", "nodes": [{"id": name} for name in nodes]}
    return replace(new_run(run_id), nodes=nodes, order=Order("", {}), production=made)


def begun(node: str) -> list[Draft]:
    """A node begins and is handed over."""
    ready = {"node": node, "try": 1, "task_id": f"task-{node}", "input": {"prompt": "x", "n": 1.5}, "input_hash": "h"}
    return [Draft("node_ready", ready), Draft("node_started", {"node": node, "kind": "generate"})]


async def told(runs: Runs, run: Run, *drafts: Draft, at: datetime = START) -> Run:
    """The Run after these events, committed."""
    saved = await runs.save(applied(run, drafts, at), drafts, at, NOTHING)
    assert saved is not None
    return saved


async def test_a_large_run_is_read_as_its_events_tell_it(runs: Runs) -> None:
    """EVENT-3: whatever of it was written with which commit, every way to it reads the Run after its last one; a slower
    writer still writes nothing, and who lets it catch up late undoes nothing."""
    run, _ = await add(runs, large("r1"), key="k")
    await add(runs, new_run("r2"))
    first = run = await told(runs, run, Draft("run_started"))
    for number in range(5):
        run = await told(runs, run, *begun(f"n{number}"), at=START + timedelta(microseconds=number))
        assert await runs.get("r1") == run
    assert [found.id for found in await runs.several(["r1", "r2"])] == ["r1", "r2"]
    assert (await runs.several(["r2", "r1"]))[0] == run
    assert (await runs.page("a", [RunState.RUNNING], None, "", 9)) == [run]
    assert (await runs.silent(START + timedelta(days=1), "", 1)) == {"r1": run.revision}
    assert await runs.find_by_key("a", "k", "f") == run
    assert (await add(runs, large("r3"), key="k")) == (run, True)
    assert await runs.save(first, [Draft("run_paused")], START, NOTHING) is None
    await runs.catch_up(first)
    assert await runs.get("r1") == run
    await runs.catch_up(run)
    assert await runs.get("r1") == run
    run = await told(runs, run, *begun("n9"), Draft("run_completed", {"cost": None, "error": None}))
    assert await runs.get("r1") == run


async def test_the_document_of_a_large_run_follows_its_events(pg_url: str) -> None:
    """OPS-7, EVENT-3: it is behind until somebody who left or found it so lets it catch up, until it is too far behind,
    or until the Run rests; meanwhile the guard keeps the release before, which reads it alone, from writing the Run."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(pg_url, schema=SCHEMA)
    runs, other = (PostgresRuns(database, CountedIds()) for _ in range(2))

    async def document() -> Run:
        async with database.read() as tx:
            row = (await tx.execute(select(table.c.document, table.c.production))).one()
        return run_from_document(row.document, row.production)

    try:
        written, _ = await add(runs, large("r1"))
        run = await told(runs, written, *begun("n1"))
        assert await document() == written
        assert await runs.save(await document(), [Draft("told")], START, NOTHING) is None
        assert await other.get("r1") == run
        await other.catch_up(run)
        assert await document() == run
        run = await told(other, run, *(Draft("told") for _ in range(MOST_BEHIND - 1)))
        assert await document() == run
        run = await told(runs, await told(runs, run, Draft("told")), Draft("run_paused"))
        assert await document() == run
    finally:
        await database.close()

"""The contract of `StandingReader`: one suite, every implementation; and the plans of the statements."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, text

from services.routing.domain.standing import Need, Standing, findings, limits, matching
from services.routing.domain.task import TERMINAL_ATTEMPTS, AttemptState, Task, TaskState
from services.routing.ports.standing import Part
from services.routing.store import checks_postgres as sql
from services.routing.store.checks_memory import standing_of
from services.routing.store.tasks_memory import MemoryTasks, _Row
from services.routing.store.tasks_rows import attempt_row, task_row
from services.routing.store.tasks_tables import attempts, ready, tasks
from tests.contract.routing.tasks_stores import KINDS, at, attempt, opened, queued

NOW = at(10_000)
BOUNDS = limits(NOW, 1800.0)
LIVE = (None, *(state for state in AttemptState if state not in TERMINAL_ATTEMPTS))


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest) -> str:
    """Where each implementation keeps its rows; a database of its own is only made for the one that needs it."""
    return request.getfixturevalue("pg_url") if request.param == "postgres" else ""


@pytest.fixture
async def store(address: str) -> AsyncIterator[Any]:
    """Each implementation in turn, empty."""
    async with opened(address) as made:
        yield made


async def plant(
    store: Any, task: Task, claimed_until: Any = None, *, tag: float = 0, fresh: bool = False, looked: Any = None
) -> Standing:
    """Put a row where it stands, past every rule: what no write of ours would do. `fresh`: it was never claimed."""
    if isinstance(store, MemoryTasks):
        store._rows[task.id] = _Row(task, tag, claimed_until, looked)
    else:
        place = {"tag": tag, "timer_at": None if fresh else task.next_action_at, "parked_at": looked}
        async with store._database.unit() as tx:
            await tx.execute(insert(tasks).values(task_row(task) | {"claimed_until": claimed_until, **place}))
            if fresh:
                await tx.execute(insert(ready).values(task_id=task.id, tag=tag))
            for item in task.attempts:
                await tx.execute(insert(attempts).values(attempt_row(item)))
    return standing_of(task, claimed_until)


def standing_task(name: str, state: TaskState, live: AttemptState | None, **more: Any) -> Task:
    """A Task in that state with an Attempt in that one; `more` for both, by the names of their fields."""
    task = replace(queued(name), state=state, next_action_at=NOW, waiting_reason="queue: x")
    of_task = {key: value for key, value in more.items() if key in Task.__slots__}
    if live is not None:
        fields = {"provider_task_id": "job", "uncertain_deadline": NOW, "state": live}
        of_attempt = {key: value for key, value in more.items() if key not in of_task}
        task = replace(task, attempts=(attempt(task, 1, **{**fields, **of_attempt}),))
    return replace(task, **of_task)


async def walk(store: Any, part: Part, count: int) -> dict[str, tuple[Standing, int]]:
    """A whole pass over a part, by Task."""
    found: dict[str, tuple[Standing, int]] = {}
    place: Any = None
    while True:
        suspects, place = await store.suspects(part, place, count, BOUNDS)
        for standing, matches in suspects:
            assert standing.task_id not in found
            found[standing.task_id] = (standing, matches)
        if place is None:
            return found


async def test_every_state_is_judged_alike(store: Any):
    """ATT-7: all combinations of states and footings, planted past every rule: the store's count of predicates is the
    domain's, a pass in slices leaves out none that is wrong, and what is right is found by nobody."""
    planted: dict[str, Standing] = {}
    numbers = itertools.count()
    for state, live, has in itertools.product(TaskState, LIVE, itertools.product((True, False), repeat=len(Need))):
        due, job, end = has
        more = {"next_action_at": NOW if due else None, "provider_task_id": "job" if job else ""}
        task = standing_task(f"t{next(numbers):03}", state, live, **more, uncertain_deadline=NOW if end else None)
        planted[task.id] = await plant(store, task)
    found: dict[str, tuple[Standing, int]] = {}
    for part in Part:
        found |= await walk(store, part, 7)
    wrong = {name for name, standing in planted.items() if judged(standing)}
    told = {name for name, (standing, matches) in found.items() if findings(standing, matches, BOUNDS)}
    assert (sorted(told - wrong), sorted(wrong - told)) == ([], [])
    assert all(
        standing == planted[name] and matches == matching(standing) for name, (standing, matches) in found.items()
    )
    assert len(wrong) > 150


def judged(standing: Standing) -> bool:
    """Whether the domain finds something; a Task that has ended, with its Attempt, is nobody's concern."""
    open_ = standing.task in (TaskState.QUEUED, TaskState.DISPATCHING, TaskState.RUNNING)
    return bool((open_ or standing.live) and findings(standing, matching(standing), BOUNDS))


@pytest.mark.parametrize(
    ("state", "live", "more", "claimed_s"),
    [
        (TaskState.QUEUED, None, {"waiting_reason": ""}, None),
        (TaskState.QUEUED, None, {}, -16),
        (TaskState.RUNNING, AttemptState.ACCEPTED, {"next_action_at": NOW + timedelta(hours=2)}, None),
        (TaskState.RUNNING, AttemptState.RUNNING, {"polls_failing_since": NOW - timedelta(hours=1)}, None),
        (TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN, {"uncertain_deadline": at(9000)}, None),
    ],
)
async def test_what_is_beyond_its_bound_is_a_suspect(
    store: Any, state: TaskState, live: AttemptState | None, more: dict[str, Any], claimed_s: float | None
):
    """ATT-6, ATT-7, ATT-10: whatever the domain would find, the store hands over."""
    claimed = None if claimed_s is None else NOW + timedelta(seconds=claimed_s)
    late = {"next_action_at": NOW - timedelta(seconds=60), **more}
    standing = await plant(store, standing_task("t1", state, live, **late), claimed)
    assert findings(standing, matching(standing), BOUNDS)
    part = Part.QUEUED if state is TaskState.QUEUED else Part.FOLLOWED
    assert await walk(store, part, 10) == {"t1": (standing, 1)}


def due(name: str, state: TaskState, live: AttemptState | None, ago: float, **more: Any) -> Task:
    """One that has been due for so many seconds."""
    return standing_task(name, state, live, next_action_at=NOW - timedelta(seconds=ago), **more)


async def test_the_heads_of_the_lines(store: Any):
    """ATT-7: of each line the first that is due and free, if it has been so long enough; claimed ones are passed."""
    queued_, running = (TaskState.QUEUED, None), (TaskState.RUNNING, AttemptState.RUNNING)
    for number in range(3):
        await plant(store, due(f"q{number}", *queued_, ago=40 - number * 15, epoch=1))
    await plant(store, due("f1", *running, ago=60), NOW + timedelta(seconds=5))
    await plant(store, due("f2", *running, ago=50), NOW - timedelta(seconds=1))
    heads = await store.heads(NOW, NOW - timedelta(seconds=30))
    assert {line: item.task_id for line, item in heads.items()} == {"timer": "q0", "followed": "f2"}
    assert heads["followed"].attempt_id == "f2-a1"


async def test_the_heads_of_those_who_never_had_their_turn(store: Any):
    """ATT-7, CAP-11: by tag, not by age; of the parked that wait alike the first, if it has not looked for long."""
    for name, tag, ago in (("r1", 1.0, 50), ("r2", 0.5, 40), ("r3", 2.0, 90)):
        task = replace(due(name, TaskState.QUEUED, None, ago), created_at=NOW - timedelta(seconds=ago))
        await plant(store, replace(task, next_action_at=task.created_at), tag=tag, fresh=True)
    for name, model, tag, ago in (
        ("p1", "a", 1.0, 50),
        ("p2", "a", 2.0, 90),
        ("p3", "b", 1.0, 5),
        ("p4", "a", 3.0, 40),
    ):
        key = "k2" if name == "p4" else "k1"
        task = due(name, TaskState.QUEUED, None, -600, waiting_reason="capacity: full", epoch=1, round_key=key)
        asked = replace(task.request, model=model)
        await plant(store, replace(task, request=asked), tag=tag, looked=NOW - timedelta(seconds=ago))
    heads = await store.heads(NOW, NOW - timedelta(seconds=30))
    assert {line: item.task_id for line, item in heads.items()} == {
        "ready": "r2",
        "parked a k1": "p1",
        "parked a k2": "p4",
    }


async def test_debts_to_health_and_slots_of_nobody(store: Any):
    """HLT-13, CAP-2: what is owed for long; leases whose Attempt ended before a time, or never was."""
    ended = {"state": AttemptState.FAILED, "report_pending": True}
    for name, finished, more in (("t1", 100, ended), ("t2", 50, ended), ("t3", 9_990, ended), ("t4", 60, {})):
        task = standing_task(name, TaskState.FAILED, AttemptState.RESERVED)
        made = replace(task.attempts[0], finished_at=at(finished), **{"state": AttemptState.FAILED, **more})
        await plant(store, replace(task, attempts=(made,)))
    await plant(store, standing_task("t5", TaskState.RUNNING, AttemptState.RUNNING))
    since = NOW - timedelta(seconds=300)
    assert [item.id for item in await store.owed(since, 10)] == ["t2-a1", "t1-a1"]
    assert [item.id for item in await store.owed(since, 1)] == ["t2-a1"]
    leases = [f"t{number}-a1" for number in range(1, 7)]
    assert await store.unheld(leases, since) == {"t1-a1": "t1", "t2-a1": "t2", "t4-a1": "t4", "t6-a1": ""}


ENDED_ROWS = 20_000
MORE_TASKS = """
INSERT INTO tasks SELECT (jsonb_populate_record(t, jsonb_build_object('id', 'done-' || n))).*
FROM tasks t, generate_series(1, :count) n WHERE t.id = 'done'
"""
MORE_ATTEMPTS = """
INSERT INTO attempts SELECT (jsonb_populate_record(a, jsonb_build_object(
    'id', 'done-' || n || '-a1', 'task_id', 'done-' || n))).*
FROM attempts a, generate_series(1, :count) n WHERE a.id = 'done-a1'
"""


async def test_what_has_ended_costs_a_check_nothing(pg_url: str):
    """ATT-7: with twenty thousand ended Tasks, no statement of a check reads a table from end to end."""
    async with opened(pg_url) as store:
        done = standing_task("done", TaskState.SUCCEEDED, AttemptState.RESERVED, finished_at=at(5))
        over = replace(done.attempts[0], state=AttemptState.SUCCEEDED, finished_at=at(5))
        await plant(store, replace(done, attempts=(over,)))
        for number in range(200):
            live = LIVE[number % len(LIVE)]
            state = TaskState.QUEUED if live is None else TaskState.RUNNING
            await plant(store, standing_task(f"t{number:03}", state, live))
        async with store._database.unit() as tx:
            for statement in (MORE_TASKS, MORE_ATTEMPTS):
                await tx.execute(text(statement), {"count": ENDED_ROWS})
            for table in ("tasks", "attempts"):
                await tx.execute(text(f"ANALYZE {table}"))
        read = {name: await explained(store, *asked) for name, asked in statements().items()}
        whole = {name: plan.replace("Seq Scan on ready", "") for name, plan in read.items()}  # it holds nothing ended
        assert {name: plan for name, plan in whole.items() if "Seq Scan on" in plan} == {}


def statements() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every statement of a check, with values."""
    places: dict[Part, tuple[Any, ...]] = {
        Part.QUEUED: (NOW, "t050"), Part.FOLLOWED: (NOW, "t050"), Part.UNTIMED: ("t050",), Part.LIVE: ("t050",),
    }  # fmt: skip
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "heads": (sql.HEADS, {"now": NOW, "since": NOW}),
        "owed": (sql.OWED, {"since": NOW, "count": 10}),
        "unheld": (sql.UNHELD, {"ids": ["t001-a1", "x"], "since": NOW}),
    }
    for part, place in places.items():
        after = {f"after{number}": value for number, value in enumerate(place)}
        end = {f"end{number}": value for number, value in enumerate(place)}
        asked[f"{part} end"] = (sql.end_statement(part, place), {**after, "skip": 20})
        asked[f"{part} first"] = (sql.judging_statement(part, None, place), {**end, **asdict(BOUNDS)})
        asked[f"{part} last"] = (sql.judging_statement(part, place, None), {**after, **asdict(BOUNDS)})
    return asked


async def explained(store: Any, statement: Any, values: dict[str, Any]) -> str:
    """The plan."""
    async with store._database.read() as tx:
        return "\n".join((await tx.execute(text(f"EXPLAIN {statement.text}"), values)).scalars())


async def test_a_task_that_two_ways_find_is_told(pg_url: str):
    """ATT-7: in `ready` or by its timer, never by both: a cancel of a Task that was never claimed moves it over."""
    async with opened(pg_url) as store:
        await store.add(queued("good"))
        await store.ask_cancel("good", "", at(1))
        await plant(store, standing_task("both", TaskState.QUEUED, None))
        async with store._database.unit() as tx:
            await tx.execute(insert(ready).values(task_id="both", tag=0.0))
        found = {name: matches for name, (_, matches) in (await walk(store, Part.QUEUED, 10)).items()}
        assert found == {"good": 1, "both": 0}

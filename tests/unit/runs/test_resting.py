"""A Run at rest costs a tick nothing but a look at its revision, and is never forgotten."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from libs.faults.fault import Fault
from services.runs.app.check_standing import Standing
from services.runs.app.command_run import pause_run
from services.runs.app.remembering import LONGEST
from services.runs.domain.run import Node, NodeState, Order, Question, Run, RunState
from services.runs.domain.task_view import TaskView
from services.runs.domain.waking import JUST_AFTER, wakes_at
from services.runs.store.memory import MemoryRuns
from tests.support.worlds import START
from tests.unit.runs.fakes import FakeRouting
from tests.unit.runs.house import House
from tests.unit.runs.test_asking_again import FILM, UNDER, full
from tests.unit.runs.test_gates import FRAME, production
from tests.unit.runs.test_productions import episode

ALONE = {"id": "film", "kind": "generate", "model": "join", "input": {}}


class Counting(MemoryRuns):
    """Counts the Runs that ticks read whole."""

    read = 0

    async def several(self, run_ids: Sequence[str]) -> list[Run]:
        """See the port."""
        self.read += len(run_ids)
        return await super().several(run_ids)


class Watched(House):
    """One whose ticks are counted."""

    store = Counting
    runs: Counting

    async def read_by(self, ticks: int = 1, *, seconds: float = 0) -> int:
        """How many Runs so many ticks of each kind read whole."""
        self.clock.advance(seconds)
        before = self.runs.read
        for _ in range(ticks):
            await self.advance.follow_running()
            await self.advance.carry_productions()
        return self.runs.read - before

    def runs_on(self) -> None:
        """Routing tells that every Task is at its provider."""
        for task_id in self.routing.submitted:
            self.routing.views[task_id] = TaskView(task_id, 1, "running", None)


async def test_what_waits_for_people_is_not_read() -> None:
    """RUN-2, RUN-6: ticks read no Run at rest; a command, and the deadline of a question, wake it."""
    home = Watched(FakeRouting(answering=True))
    runs = [await home.carry(await home.produce(episode())) for _ in range(3)]
    assert await home.read_by(20, seconds=60) == 0
    await pause_run(home.desk, "a", runs[0].id, "wait", "p1")
    assert await home.read_by(20) == 1
    assert await home.read_by(20, seconds=4 * 3600) >= 3
    assert await home.said(runs[1], "review_escalated")


@pytest.mark.parametrize("single", [False, True])
async def test_what_providers_have_is_read_when_they_tell_something(single: bool) -> None:
    """RUN-1a, RUN-2: while a Task is told as it was, its Run is not read; news are heard by the next tick."""
    home = Watched()
    run = await (home.create() if single else home.produce(episode(nodes=[ALONE])))
    await home.carry(run)
    home.runs_on()
    await home.carry(run)
    assert await home.read_by(20) == 0
    (task_id,) = home.routing.submitted
    home.routing.views[task_id] = TaskView(task_id, 2, "running", None, waiting_reason="capacity: full")
    assert await home.read_by() == 1
    assert await home.read_by(20) == 0
    home.routing.views.clear()
    home.answer_all(run)
    assert await home.read_by() == 1
    assert (await home.carry(run)).state is RunState.SUCCEEDED


async def test_a_process_that_remembers_nothing_looks_at_everything() -> None:
    """RUN-6, ATT-7: a new process reads every live Run whole, and so does an old one after a while."""
    home = Watched(FakeRouting(answering=True))
    for _ in range(3):
        await home.carry(await home.produce(episode()))
    assert await home.read_by() == 0
    home.advance = home.beside()
    assert await home.read_by() == 3
    assert await home.read_by() == 0
    assert await home.read_by(seconds=LONGEST.total_seconds()) == 3


async def test_what_was_tried_in_vain_is_tried_again() -> None:
    """RUN-6, COST-12: an act that ended as nothing is done again, and so is what a Task's end began."""
    home = Watched(FakeRouting(answering=True))
    home.budgets.away = Fault.of("peer_unavailable", "away")
    run = await home.carry(await home.produce(episode(nodes=[ALONE])))
    assert await home.read_by(3) == 3
    home.budgets.away = None
    assert (await home.carry(run)).state is RunState.SUCCEEDED
    home.examiner.away = Fault.of("peer_unavailable", "away")
    run = await home.carry(await home.produce(episode(nodes=[ALONE | {"checks": ["decodes"]}])))
    assert await home.read_by(3) == 3
    home.examiner.away = None
    assert (await home.carry(run)).state is RunState.SUCCEEDED


async def test_a_level_without_room_is_no_reason_to_read_its_runs() -> None:
    """COST-10: Runs behind a level are read once; the level is looked at each time, and they again when it has room."""
    home = Watched(FakeRouting(answering=True))
    runs = await full(home, *(production(FRAME, budget=UNDER) for _ in range(3)))
    for _ in range(5):
        await home.again.look()
    before = home.runs.read
    await home.again.look()
    assert home.runs.read == before
    home.budgets.hard[FILM] = home.budgets.hard[FILM] * 9
    await home.again.look()
    assert [(await home.carry(run)).state for run in runs] == [RunState.SUCCEEDED] * 3


async def test_who_rightly_waits_is_judged_once() -> None:
    """RUN-6, OPS-6: a silent Run is read once while nothing should move it; what should have moved by now is told."""
    home = Watched(FakeRouting(answering=True))
    run = await home.carry(await home.produce(episode()))
    standing = Standing(home.runs, home.routing, home.alerts, home.plans, home.world, timedelta(minutes=15))
    home.clock.advance(1_000)
    before = home.runs.read
    for _ in range(5):
        await standing.look()
    assert (home.runs.read - before, home.alerts.told) == (1, [])
    home.clock.advance(4 * 3600)  # and no tick hands its question on
    await standing.look()
    assert home.alerts.told == [("stuck_state", run.id)]


def hours(count: float) -> datetime:
    """So many after the start."""
    return START + timedelta(hours=count)


def test_the_time_that_a_run_waits_for() -> None:
    """RUN-2, HUMAN-1, GATE-4: the nearest of its deadline, those of its questions, the end of a pause between tries,
    and when the oldest question is open for too long; what is past waits for nothing."""
    home = Watched()
    document = episode(deadline="90h", reviews={"most": 5, "resume": 1, "oldest": "48h"})
    run = Run("r", "a", RunState.RUNNING, Order("", {}), {}, START, production=document)
    plan = home.plan(run)
    assert wakes_at(plan, run, START) == hours(90)
    asked = Question("q", "approved", "gate", "", "", "", (), hours(4), "", "rest", START, 14_400.0)
    run = replace(run, questions={"q": asked})
    assert wakes_at(plan, run, START) == hours(4)
    assert wakes_at(plan, run, hours(4)) == hours(48) + JUST_AFTER
    waits = Node("film", "generate", state=NodeState.PENDING, retry_at=hours(1))
    assert wakes_at(plan, replace(run, nodes={"film": waits}), START) == hours(1)
    begun = replace(waits, state=NodeState.RUNNING)
    assert wakes_at(plan, replace(run, nodes={"film": begun}), START) == hours(4)
    assert wakes_at(plan, run, hours(90)) is None

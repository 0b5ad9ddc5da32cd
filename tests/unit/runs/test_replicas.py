"""Two processes of runs that carry the same productions: every await of one may let the other go ahead."""

import asyncio
import logging
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from services.runs.app.advance_runs import Advance
from services.runs.app.command_run import cancel_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.hub import Hub
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.domain.engine import decided
from services.runs.domain.run import TERMINAL_STATES, NodeState, Run, RunState
from services.runs.domain.starting import task_id_of
from tests.unit.runs.fakes import OUT_OF_ORDER, PRICE
from tests.unit.runs.house import House
from tests.unit.runs.test_productions import episode, house

ITEMS = 4
GENERATED = 2 * ITEMS + 1


class Unsteady:
    """Something asked over a wire: before and after every call others may have their turns, as many as are drawn."""

    def __init__(self, inner: Any, rng: random.Random) -> None:
        self._inner = inner
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*given: Any, **more: Any) -> Any:
            await self._others()
            answer = await method(*given, **more)
            await self._others()
            return answer

        return call

    async def _others(self) -> None:
        for _ in range(self._rng.choice((0, 0, 1, 2, 5, 20))):
            await asyncio.sleep(0)


def replica(home: House, rng: random.Random) -> Advance:
    """The ticks of a process with a wire of its own to everything."""
    runs: Any = Unsteady(home.runs, rng)
    routing: Any = Unsteady(home.routing, rng)
    budgets: Any = Unsteady(home.budgets, rng)
    examiner: Any = Unsteady(home.examiner, rng)
    alerts: Any = Unsteady(home.alerts, rng)
    hands = Hands(runs, routing, budgets, Inspector(examiner), alerts, home.world)
    return Advance(runs, routing, hands, Plans(), Recorder(runs, Hub(runs), home.world, alerts), home.world)


async def carried(home: House, run: Run, rng: random.Random) -> Run:
    """Two replicas tick over it, and a person approves, until it has ended."""

    async def ticks(advance: Advance) -> None:
        while (await home.now(run)).state not in TERMINAL_STATES:
            await advance.carry_productions()
            await asyncio.sleep(0)

    async def people() -> None:
        while (await home.now(run)).state not in TERMINAL_STATES:
            if await home.reviews(run):
                await home.decide(run, "approve")
            home.clock.advance(10)
            await asyncio.sleep(0)

    await asyncio.gather(ticks(replica(home, rng)), ticks(replica(home, rng)), people())
    return await home.now(run)


@pytest.mark.parametrize("seed", range(12))
async def test_two_replicas_do_everything_once(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """VER-4, EVENT-1, COST-11: whatever turns two processes take over one store, a node has one Task for a try, a Hold
    is taken and settled once, and the events are without a gap and tell the Run."""
    caplog.set_level(logging.ERROR)
    home, rng = house(), random.Random(seed)
    home.routing.script = {"frames/S02": [OUT_OF_ORDER], "film": [OUT_OF_ORDER]}
    run = await carried(home, await home.produce(episode()), rng)
    assert run.state is RunState.SUCCEEDED
    events = await home.events(run)
    assert [event.sequence for event in events] == list(range(1, run.last_sequence + 1))
    ready = [event.data["task_id"] for event in events if event.kind == "node_ready" and event.data.get("task_id")]
    assert len(set(ready)) == len(ready) == GENERATED + 2
    assert set(home.routing.submitted) == set(ready) == set(home.budgets.held) == home.budgets.over
    assert sum(home.budgets.spent.values(), Decimal(0)) == PRICE.amount * GENERATED
    assert not caplog.records
    await home.rebuilds(run)


@pytest.mark.parametrize("seed", range(12))
async def test_no_replica_gives_back_what_another_one_submits_under(seed: int) -> None:
    """COST-9, COST-11, VER-4: two replicas ask for the Hold of one try while its price changes: what is handed over has
    a Hold that stands, which is settled once."""
    home, rng = house(), random.Random(seed)
    home.routing.prices = [PRICE * rng.randint(1, 3) for _ in range(200)]
    bare: list[str] = []

    async def seen() -> None:
        task = home.routing.submitted[-1]
        first = home.routing.submitted.count(task) == 1  # a slower replica may do it again once all is over
        if first and (task not in home.budgets.held or task in home.budgets.over):
            bare.append(task)

    home.routing.during_submit = seen
    nodes = [{"id": f"film-{n}", "kind": "generate", "model": "join", "input": {"n": n}} for n in range(3)]
    run = await carried(home, await home.produce(episode(nodes=nodes)), rng)
    assert (run.state, bare) == (RunState.SUCCEEDED, [])
    assert set(home.routing.submitted) == set(home.budgets.held) == home.budgets.over
    assert len(home.budgets.held) == len(nodes)
    assert not home.budgets.closed


async def test_what_was_paid_is_booked_whoever_gave_its_hold_back() -> None:
    """COST-11, COST-12: a Hold that is given back by a replica that stood still is settled by a correction."""
    home = house()
    run = await home.produce(episode(nodes=[{"id": "film", "kind": "generate", "model": "join", "input": {}}]))
    home.budgets.lost = True
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert sum(home.budgets.spent.values(), Decimal(0)) == PRICE.amount


async def test_a_hold_that_nobody_recorded_is_given_back_with_a_cancel() -> None:
    """COST-11, RUN-6: who died between a Hold and its event leaves it to the Run, which was cancelled meanwhile."""
    home = house()
    run = await home.produce(episode(nodes=[{"id": "film", "kind": "generate", "model": "join", "input": {}}]))
    dying = Unsaved(home.runs, "budget_held")
    runs: Any = dying
    hands = Hands(runs, home.routing, home.budgets, Inspector(home.examiner), home.alerts, home.world)
    advance = Advance(runs, home.routing, hands, Plans(), Recorder(runs, home.hub, home.world, home.alerts), home.world)
    with pytest.raises(BaseExceptionGroup):
        await advance.carry_productions()
    assert len(home.budgets.held) == 1
    await cancel_run(home.desk, "a", run.id)
    run = await home.carry(await home.carry(run))  # routing is asked, then what it told is heard
    assert run.state is RunState.CANCELLED
    assert home.routing.submitted == []
    assert set(home.budgets.held) == home.budgets.over


async def test_a_run_that_was_put_back_asks_for_the_same_work_by_the_same_name() -> None:
    """ATT-6, RUN-4: the id of a Task follows from its Run, node, try and input; another input is other work."""
    home = house()
    nodes = [{"id": "film", "kind": "generate", "model": "join", "input": {}}]
    before = await home.produce(episode(nodes=nodes))
    first = await home.carry(before)
    again = decided(home.plan(before), before, home.clock.now())
    ready = [draft.data["task_id"] for draft in again if draft.kind == "node_ready"]
    assert ready == home.routing.submitted == list(first.nodes["film"].task_ids)
    film = first.nodes["film"]
    assert len({task_id_of(first, node, name) for node in (film, replace(film, task_ids=())) for name in "ab"}) == 4


async def test_a_try_holds_money_of_its_own() -> None:
    """COST-9, COST-11: while the Hold of the try before cannot be settled the next one waits, however long ago its
    pause ended."""
    home = house()
    home.routing.script = {"film": [OUT_OF_ORDER]}
    run = await home.produce(episode(nodes=[{"id": "film", "kind": "generate", "model": "join", "input": {}}]))
    home.budgets.away = Fault.of("peer_unavailable", "away")
    run = await home.carry(await home.carry(run), seconds=300)
    assert len(home.routing.submitted) == 1
    assert run.nodes["film"].state is NodeState.PENDING
    home.budgets.away = None
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED
    assert set(home.routing.submitted) == set(home.budgets.held) == home.budgets.over
    assert len(home.budgets.over) == 2


class Unsaved:
    """A store whose process dies before it writes events of one kind."""

    def __init__(self, inner: Any, kind: str) -> None:
        self._inner = inner
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def save(self, run: Run, drafts: Any, *given: Any) -> Run | None:
        """See the port."""
        if any(draft.kind == self._kind for draft in drafts):
            raise RuntimeError("killed")
        saved: Run | None = await self._inner.save(run, drafts, *given)
        return saved


async def test_a_hold_that_ended_in_another_way_ends_the_run_too() -> None:
    """COST-11: another replica may have given it back; asking for ever would keep the Run for ever."""
    home = house()
    run = await home.produce(episode(nodes=[{"id": "film", "kind": "generate", "model": "join", "input": {}}]))
    home.budgets.away = Fault.of("conflict", "it was released")
    run = await home.carry(run)
    assert run.state is RunState.SUCCEEDED

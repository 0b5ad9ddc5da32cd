"""A large production over PostgreSQL, carried by two processes one of which dies between a commit and its document."""

import random
from typing import Any

from libs.store.database import Database
from libs.store.migrations import migrate
from services.runs.app.advance_runs import Advance
from services.runs.app.create_run import create_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.hub import Hub
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.domain.history import rebuilt
from services.runs.domain.run import Order, Run, RunState
from services.runs.store.following import SMALL
from services.runs.store.postgres import PostgresRuns
from tests.support.worlds import steered_world
from tests.unit.runs.fake_budgets import FakeBudgets
from tests.unit.runs.fakes import FakeAlerts, FakeExaminer, FakeRouting
from tests.unit.runs.house import bare
from tests.unit.runs.test_productions import episode


class Dying(PostgresRuns):
    """A store whose process dies now and then before a document is written."""

    chance = random.Random(1)

    async def catch_up(self, run: Run) -> None:
        """See the port."""
        if self.chance.random() < 0.5:
            self._behind.clear()
        await super().catch_up(run)


def fan_out(shots: int) -> dict[str, Any]:
    """So many clips and a film of them."""
    over = [{"id": f"S{number}", "prompt": "a boat"} for number in range(shots)]
    clip = {"kind": "generate", "model": "clip", "input": {"prompt": "${item.prompt}"}}
    film = {"id": "film", "kind": "generate", "model": "join", "input": {"clips": "${clips.artifacts}"}}
    budget = {"currency": "CNY", "cost": "9000.00"}
    return episode(nodes=[{"id": "clips", "kind": "map", "over": over, "node": clip}, film], budget=budget)


async def test_a_large_production_is_carried_and_rebuilt(pg_url: str) -> None:
    """EVENT-3, RUN-6: whoever carries it on reads it as its events tell it, whatever its document was when another
    process died; each node has one Task."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(pg_url, schema=SCHEMA)
    world, _ = steered_world()
    routing, budgets, alerts = FakeRouting(answering=True), FakeBudgets(), FakeAlerts()
    stores = [make(database, world.ids) for make in (Dying, PostgresRuns)]

    def process(runs: PostgresRuns) -> Advance:
        hands = Hands(runs, routing, budgets, Inspector(FakeExaminer()), alerts, world)
        return Advance(runs, routing, hands, Plans(), Recorder(runs, Hub(runs), world, alerts), world)

    try:
        run, _ = await create_run(
            stores[0], routing, world, budgets, tenant="a", order=Order("", {}), labels={}, production=fan_out(SMALL),
        )  # fmt: skip
        processes = [process(store) for store in stores]
        while run.state in (RunState.PENDING, RunState.RUNNING):
            for each in processes:
                await each.carry_productions()
                events = await stores[0].events(run.id, 0, 100_000)
                found = [await store.get(run.id) for store in stores]
                assert found[0] == found[1]
                assert found[0] is not None
                run = found[0]
                assert bare(rebuilt(events)) == bare(run)
    finally:
        await database.close()
    assert run.state is RunState.SUCCEEDED
    assert len(run.nodes) == SMALL + 2
    assert len(routing.submitted) == len(set(routing.submitted)) == SMALL + 1

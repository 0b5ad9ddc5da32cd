"""What Runs cost that wait, and what a commit of a large one costs beside that of a small one.

    python -m tests.bench.bench_runs [--waiting 1000] [--nodes 2000] [--ticks 200] [--commits 100] [--json]

The engine's own ticks over a real PostgreSQL; routing and budgets are stood in for, and answer at once. Processor time
is that of this process and of the database's tree together, so that it does not depend on who else uses the machine.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.host.world import RealClock, RisingUlids
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from services.runs.app.advance_runs import Advance
from services.runs.app.ask_again import AskAgain
from services.runs.app.create_run import create_run
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hands import Hands
from services.runs.app.hub import Hub
from services.runs.app.plans import Plans
from services.runs.app.recording import Recorder
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.domain.run import Draft, Order, Run
from services.runs.domain.task_view import TaskView
from services.runs.store.postgres import PostgresRuns
from tests.support.processes import cpu_seconds, tree
from tests.unit.runs.fake_budgets import FakeBudgets
from tests.unit.runs.fakes import FakeAlerts, FakeExaminer, FakeRouting

FEW, SMALL = 1, 20


@dataclass
class Shop:
    """The engine over one database."""

    server: EmbeddedPostgres
    runs: PostgresRuns
    world: World
    routing: FakeRouting
    budgets: FakeBudgets
    recorder: Recorder
    advance: Advance
    again: AskAgain

    async def produce(self, document: Mapping[str, Any]) -> Run:
        """A new production."""
        run, _ = await create_run(
            self.runs, self.routing, self.world, self.budgets,
            tenant="bench", order=Order("", {}), labels={}, production=document,
        )  # fmt: skip
        return run

    async def cost(self, times: int, work: Callable[[], Awaitable[object]]) -> float:
        """Milliseconds of the processor for one of so many."""
        before = time.process_time() + cpu_seconds(tree(self.server.pid))
        for _ in range(times):
            await work()
        return (time.process_time() + cpu_seconds(tree(self.server.pid)) - before) / times * 1000


def production(nodes: int, *, gated: bool) -> dict[str, Any]:
    """One that waits for a person, with everything else behind; or one whose first node is at its provider."""
    first = {"id": "first", "kind": "gate"} if gated else generate("first", [])
    rest = [generate(f"shot-{number}", ["first"]) for number in range(1, nodes)]
    return {"production": "bench", "budget": {"currency": "CNY", "cost": "90000.00"}, "nodes": [first, *rest]}


def generate(name: str, needs: list[str]) -> dict[str, Any]:
    """A clip."""
    asked = {"prompt": "a boat on a lake at dawn, mist, long lens", "duration_s": 5}
    return {"id": name, "kind": "generate", "model": "clip", "needs": needs, "input": asked}


async def opened(stack: AsyncExitStack, server: EmbeddedPostgres, name: str) -> Shop:
    """An engine over a database of its own."""
    admin = await asyncpg.connect(server.url)
    await admin.execute(f'CREATE DATABASE "{name}"')
    await admin.close()
    url = server.url_of(name)
    await migrate(url, schema=SCHEMA, versions=VERSIONS)
    database = Database(url, schema=SCHEMA)
    stack.push_async_callback(database.close)
    world = World(RealClock(), RisingUlids(), random.Random(0))
    runs, routing, budgets, alerts = PostgresRuns(database, world.ids), FakeRouting(), FakeBudgets(), FakeAlerts()
    recorder = Recorder(runs, Hub(runs), world, alerts)
    hands = Hands(runs, routing, budgets, Inspector(FakeExaminer()), alerts, world)
    advance = Advance(runs, routing, hands, Plans(), recorder, world)
    return Shop(server, runs, world, routing, budgets, recorder, advance, AskAgain(runs, budgets, recorder, world))


async def waiting(shop: Shop, count: int, ticks: int, *, gated: bool) -> float:
    """A tick over so many that wait."""
    for _ in range(count):
        await shop.produce(production(SMALL, gated=gated))
    for _ in range(4):
        await shop.advance.carry_productions()
        for task_id in shop.routing.submitted:
            shop.routing.views[task_id] = TaskView(task_id, 1, "running", None)
    await shop.again.look()
    return await shop.cost(ticks, shop.advance.carry_productions)


async def committing(shop: Shop, nodes: int, commits: int) -> tuple[float, float]:
    """(A commit that tells of one node, the same with the document that follows it at the end of a look)."""
    run = await shop.produce(production(nodes, gated=True))

    async def commit() -> None:
        nonlocal run
        told = Draft("node_waiting", {"node": "shot-1", "reason": f"look {run.last_sequence}"})
        saved = await shop.recorder.record(run, [told])
        assert saved is not None
        run = saved

    async def look() -> None:
        await commit()
        await shop.runs.catch_up(run)

    await commit()
    return await shop.cost(commits, commit), await shop.cost(commits, look)


async def measure(options: argparse.Namespace) -> dict[str, float]:
    """Every figure."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="pointsman-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(EmbeddedPostgres(folder / "pg"))
            for gated, whom in ((True, "a person"), (False, "a provider")):
                few, many = [
                    await waiting(await opened(stack, server, f"{whom} {count}"), count, options.ticks, gated=gated)
                    for count in (FEW, options.waiting)
                ]
                figures[f"tick, {FEW} waiting for {whom}: CPU ms"] = few
                figures[f"tick, {options.waiting:,} waiting for {whom}: CPU ms"] = many
                figures[f"ratio, waiting for {whom}"] = many / few
            costs = {
                nodes: await committing(await opened(stack, server, f"{nodes} nodes"), nodes, options.commits)
                for nodes in (SMALL, options.nodes)
            }
            for nodes, (commit, look) in costs.items():
                figures[f"commit, {nodes:,} nodes: CPU ms"] = commit
                figures[f"commit and document, {nodes:,} nodes: CPU ms"] = look
            figures["ratio of commits"] = costs[options.nodes][0] / costs[SMALL][0]
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What Runs cost that wait, and what a commit of a large one costs.")
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(measure(options))
    if options.json:
        print(json.dumps({name: round(figure, 3) for name, figure in figures.items()}))
    else:
        for name, figure in figures.items():
            print(f"{name:50} {figure:>10,.2f}")


if __name__ == "__main__":
    main()

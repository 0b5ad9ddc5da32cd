"""One world from one seed: built, ordered from, struck, healed, and brought to rest."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.runs.domain.run import LIVE_STATES, Run
from tests.simulation.cluster import EPOCH, Cluster, VirtualClock, world_of
from tests.simulation.databases import (
    Database,
    Makers,
    Stores,
    WitnessedBudgets,
    WitnessedCapacity,
    WitnessedTasks,
)
from tests.simulation.loop import VirtualLoop
from tests.simulation.misfortune import Misfortune, Temper
from tests.simulation.network import Network, Process, Rewrite
from tests.simulation.people import TENANT, People
from tests.simulation.producers import Producers
from tests.simulation.providers import Outside
from tests.simulation.shape import shape_of
from tests.simulation.story import Story, tasks_of
from tests.simulation.witness import Witness
from tests.simulation.witness_of_money import MoneyWitness
from tests.simulation.witness_of_tasks import TaskWitness

LONGEST_S = 3600.0
ROUND_S = 2.0
PRODUCTIONS = ((0, 1, 2), (0.75, 0.2, 0.05))
"""How many productions a world has, and the share of worlds that have so many."""


@dataclass(frozen=True, slots=True)
class Planted:
    """Faults of ours to plant: other stores in the place of ours, other bytes on the wire."""

    makers: Makers = field(default_factory=dict)
    rewrites: Callable[[Stores], Mapping[str, Rewrite]] | None = None
    temper: Temper | None = None
    """What befalls the world, where the seed is not to choose."""
    size: str = ""
    """How large it is, where the seed is not to choose."""
    productions: int | None = None
    """How many productions are ordered in it, where the seed is not to choose."""


class Simulation:
    """One world."""

    def __init__(self, seed: int, planted: Planted) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self.shape = shape = shape_of(self._rng("shape"), planted.size)
        self.loop = VirtualLoop(self._rng("order"), shape.shuffle)
        clock = VirtualClock(self.loop)
        self.stores = Stores(clock, world_of(self.loop, self._rng("ids")).ids, planted.makers)
        self.witness = Witness(self.stores, self.loop, shape.offers)
        self.task_witness = TaskWitness(self.witness.seen)
        self.money_witness = MoneyWitness(self.loop, self.witness.seen)
        self.stores.budgets = WitnessedBudgets(self.stores.budgets, self.money_witness)
        self.stores.capacity = WitnessedCapacity(self.stores.capacity, self.witness)
        self.stores.tasks = WitnessedTasks(self.stores.tasks, self.task_witness)
        self.outside = Outside(self._rng("outside"), self.loop, shape.offers, self._note)
        self.network = Network(self.loop, self._rng("wire"), counts=self.counts, trace=self._note)
        self.temper = planted.temper
        if planted.rewrites is not None:
            self.network.rewrites = dict(planted.rewrites(self.stores))
        database = Database(self._rng("database"), self.counts)
        self.cluster = Cluster(self.loop, self.network, self.stores, database, self.outside, shape, str(seed))
        self.people = People(self._rng("people"), self._bystander(), clock, shape.offers, self.counts)
        self.producers = Producers(self.people)
        drawn = self._rng("productions").choices(*PRODUCTIONS)[0]
        self.productions = drawn if planted.productions is None else planted.productions
        self.misfortune = Misfortune(
            self._rng("misfortune"), self.loop, self.cluster, clock, self.network, database, self.outside,
            self._switch, self._reprice, shape, self.counts, self._note,
        )  # fmt: skip

    def play(self) -> Story:
        """From the first start to the end."""
        return self.loop.run(self._play())

    async def _play(self) -> Story:
        rng, shape = self._rng("coming"), self.shape
        self.cluster.place(shape.replicas)
        await self._as_people(self.people.declare())
        await asyncio.sleep(shape.warm_up_s)
        ordering = [
            self._as_people(self.people.order(number, rng.uniform(0.0, shape.spread_s)))
            for number in range(shape.orders)
        ]
        ordering += [
            self._as_people(self.producers.produce(number, rng.uniform(0.0, shape.spread_s)))
            for number in range(self.productions)
        ]
        await self.misfortune.go_on(self.loop.time() + shape.strikes_s, self.temper)
        _, waiting = await asyncio.wait(ordering, timeout=LONGEST_S)
        self.witness.breaches += [f"{len(waiting)} customers never came to an end"] if waiting else []
        await self._rest()
        await asyncio.sleep(self.shape.lease_ttl_s * 1.25)
        return await self._told()

    async def _rest(self) -> None:
        until = self.loop.time() + LONGEST_S
        while self.loop.time() < until:
            if not await self._live(productions=False) and not await self._live(productions=True):
                await self._as_people(self.producers.look_back())
                return
            await asyncio.sleep(ROUND_S)
            await self._as_people(self.producers.see_through())

    async def _live(self, *, productions: bool) -> bool:
        return bool(await self.stores.runs.revisions(tuple(LIVE_STATES), "", 1, productions=productions))

    async def _told(self) -> Story:
        stores, runs = self.stores, await self._all_runs()
        names = dict.fromkeys(name for run in runs for name in tasks_of(run))
        events = {run.id: await stores.runs.events(run.id, 0, 10_000) for run in runs}
        return Story(
            epoch=EPOCH,
            now=self.loop.time(),
            runs=runs,
            events=events,
            tasks=[task for name in names if (task := await stores.tasks.get(name)) is not None],
            jobs=self.outside.jobs,
            history=await stores.health.events(None, 0, 1_000_000),
            leases=await stores.capacity.leases(),
            witnessed=self.witness.breaches,
            seen_by_witnesses=self.witness.seen,
            superseded=self.task_witness.breaches,
            window_s=self.shape.offers.window_s,
            catalogs=self.stores.catalog.revisions,
            orders=self.people.orders,
            budgets=await stores.budgets.find("", "", 0, 10_000),
            holds=self.money_witness.holds,
            open_holds=await stores.budgets.open_holds("", "", 10_000),
            mismatches=await stores.budgets.mismatches(),
            steered=self.producers.steered,
            seen=self.people.seen,
        )

    async def _all_runs(self) -> list[Run]:
        return await self.stores.runs.page(TENANT, (), None, "", 10_000)

    def _bystander(self) -> Process:
        process = Process("people", self.network)
        self.network.join(process)
        return process

    def _as_people(self, coroutine: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return self.loop.create_task(coroutine, context=self.people.process.context.copy())

    async def _switch(self, subject: str, on: bool) -> None:
        await self._as_people(self.people.switch(subject, on))

    async def _reprice(self) -> None:
        await self._as_people(self.people.reprice())

    def _rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}:{name}")

    def _note(self, text: str) -> None:
        self.trace.append(f"{self.loop.time():9.3f} s  {text}")

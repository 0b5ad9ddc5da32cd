"""The stores that outlive processes, as a database behind a socket: it takes time, and sometimes it is away.

The stores themselves are the memory twins that the contract suites hold to PostgreSQL's contract.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from libs.faults.fault import Fault
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Refusal
from services.capacity.store.memory import MemoryCapacityStore
from services.cost_quote.domain.budgets import Hold, HoldAsk, Moved, Refused, ReleaseAsk, SettleAsk
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.memory import MemoryPriceBooks
from services.health.store.memory import MemoryHealthStore
from services.routing.domain.catalog import Catalog
from services.routing.domain.task import Task
from services.routing.ports import Lane, Write
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.tasks_memory import MemoryTasks
from services.runs.store.memory import MemoryRuns
from tests.simulation.witness import Witness
from tests.simulation.witness_of_money import MoneyWitness
from tests.simulation.witness_of_tasks import TaskWitness

AWAY = "the database does not answer"


@dataclass(slots=True)
class Trouble:
    """How the database fares: shares of calls that fail before they took effect, and after."""

    away: float = 0.0
    unheard: float = 0.0
    slow: float = 0.02


class Served:
    """A store behind the database's door. Every method that a store has, it has."""

    def __init__(self, store: Any, database: "Database") -> None:
        self._store = store
        self._database = database

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "close":
            return method
        if name in ("unit", "optimistic"):
            return partial(self._unit, method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._database.way_in()
            answer = await method(*args, **kwargs)
            await self._database.way_out()
            return answer

        return call

    @asynccontextmanager
    async def _unit(self, work: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[Any]:
        await self._database.way_in()
        async with work() as unit:
            yield unit
        await self._database.way_out()


@dataclass(slots=True)
class Database:
    """One for all contexts. `trouble` is replaced while the simulation goes on."""

    rng: random.Random
    counts: Counter[str]
    trouble: Trouble = field(default_factory=Trouble)

    async def way_in(self) -> None:
        """The request travels; it may not arrive."""
        await self._travel()
        if self.rng.random() < self.trouble.away:
            self.counts["database away"] += 1
            raise Fault.of("governance_backend_down", AWAY)

    async def way_out(self) -> None:
        """The answer travels; what was done stays done when it is lost."""
        await self._travel()
        if self.rng.random() < self.trouble.unheard:
            self.counts["database unheard"] += 1
            raise Fault.of("governance_backend_down", AWAY)

    async def _travel(self) -> None:
        slow = self.rng.random() < self.trouble.slow
        await asyncio.sleep(self.rng.uniform(0.05, 1.0) if slow else self.rng.uniform(0.0001, 0.002))


class WitnessedCapacity:
    """A capacity store, with a witness that hears of every lease that was granted or refused."""

    def __init__(self, store: Any, witness: Witness) -> None:
        self._store = store
        self._witness = witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Reserve, and tell the witness what is held now."""
        known = {lease.id for lease in await self._store.leases()}
        answer = await self._store.reserve(request)
        if isinstance(answer, Refusal):
            self._witness.refused(request, answer, await self._store.leases())
        elif answer.id not in known:
            await self._witness.granted(request, await self._store.leases())
        return answer

    async def release(self, *given: Any) -> Lease | None:
        """Release, and tell."""
        lease: Lease | None = await self._store.release(*given)
        self._witness.seen["slots returned"] += lease is not None
        return lease


class WitnessedTasks:
    """A store of Tasks, with a witness that hears of every claim and every write."""

    def __init__(self, store: Any, witness: TaskWitness) -> None:
        self._store = store
        self._witness = witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, lane: Lane, worker: str, count: int, now: datetime, until: datetime) -> tuple[Task, ...]:
        """Claim, and tell."""
        tasks: tuple[Task, ...] = await self._store.claim(lane, worker, count, now, until)
        self._witness.claimed(tasks, worker)
        return tasks

    async def claim_one(self, task_id: str, worker: str, now: datetime, until: datetime) -> Task | None:
        """Claim, and tell."""
        task: Task | None = await self._store.claim_one(task_id, worker, now, until)
        self._witness.claimed((task,) if task else (), worker)
        return task

    async def save(self, write: Write) -> Task:
        """Save, and tell."""
        try:
            task: Task = await self._store.save(write)
        except Fault as fault:
            if fault.code == "fenced":
                self._witness.fenced(write)
            raise
        self._witness.saved(write, task)
        return task


class WitnessedBudgets:
    """A ledger, with a witness that hears of every Hold that was taken, and of its end."""

    def __init__(self, store: Any, witness: MoneyWitness) -> None:
        self._store = store
        self._witness = witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def hold(self, ask: HoldAsk) -> Moved | Refused:
        """Take it, and tell."""
        answer: Moved | Refused = await self._store.hold(ask)
        self._witness.moved(answer)
        return answer

    async def settle(self, ask: SettleAsk) -> Moved:
        """Settle, and tell."""
        moved: Moved = await self._store.settle(ask)
        self._witness.moved(moved)
        return moved

    async def release(self, ask: ReleaseAsk) -> Hold:
        """Release, and tell."""
        hold: Hold = await self._store.release(ask)
        self._witness.moved(Moved(hold))
        return hold


class WitnessedCatalog:
    """A store of the catalogue that remembers for itself what each revision said."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.revisions: dict[int, Catalog] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, base: int, holdings: Any, catalog: Catalog, news: Any) -> None:
        """Commit, and remember."""
        await self._store.commit(base, holdings, catalog, news)
        self.revisions[base + 1] = catalog


Makers = Mapping[str, Callable[..., Any]]
"""What to make in place of a memory store, by the name of its field: for planted faults."""


class Stores:
    """Everything durable of one simulated world."""

    def __init__(self, clock: Any, ids: Any, makers: Makers) -> None:
        self.tasks: Any = makers.get("tasks", MemoryTasks)()
        self.catalog: Any = WitnessedCatalog(makers.get("catalog", MemoryCatalogStore)())
        self.runs: Any = makers.get("runs", MemoryRuns)(ids)
        self.health: Any = makers.get("health", MemoryHealthStore)()
        self.capacity: Any = makers.get("capacity", MemoryCapacityStore)(clock)
        self.books: Any = makers.get("books", MemoryPriceBooks)()
        self.budgets: Any = makers.get("budgets", MemoryBudgets)(clock)

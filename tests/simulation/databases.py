"""The stores that outlive processes, as a database behind a socket: it takes time, and sometimes it is away.

The stores themselves are the memory twins that the contract suites hold to PostgreSQL's contract.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from libs.faults.fault import Fault
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Refusal
from services.capacity.store.memory import MemoryCapacityStore
from services.cost_quote.store.memory import MemoryPriceBooks
from services.health.store.memory import MemoryHealthStore
from services.routing.store.catalog_memory import MemoryCatalogStore
from services.routing.store.tasks_memory import MemoryTasks
from services.runs.store.memory import MemoryRuns

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
        if name == "unit":
            return self._unit

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._database.way_in()
            answer = await method(*args, **kwargs)
            await self._database.way_out()
            return answer

        return call

    @asynccontextmanager
    async def _unit(self) -> AsyncIterator[Any]:
        await self._database.way_in()
        async with self._store.unit() as unit:
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
    """A capacity store, with a witness that hears of every lease that was granted."""

    def __init__(self, store: Any, witness: Callable[[Request, Sequence[Lease]], Awaitable[None]]) -> None:
        self._store = store
        self._witness = witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Reserve, and tell the witness what is held now."""
        known = {lease.id for lease in await self._store.leases()}
        answer = await self._store.reserve(request)
        if isinstance(answer, Lease) and answer.id not in known:
            await self._witness(request, await self._store.leases())
        return answer


Makers = Mapping[str, Callable[..., Any]]
"""What to make in place of a memory store, by the name of its field: for planted faults."""


class Stores:
    """Everything durable of one simulated world."""

    def __init__(self, clock: Any, ids: Any, makers: Makers) -> None:
        self.tasks: Any = makers.get("tasks", MemoryTasks)()
        self.catalog: Any = makers.get("catalog", MemoryCatalogStore)()
        self.runs: Any = makers.get("runs", MemoryRuns)(ids)
        self.health: Any = makers.get("health", MemoryHealthStore)()
        self.capacity: Any = makers.get("capacity", MemoryCapacityStore)(clock)
        self.books: Any = makers.get("books", MemoryPriceBooks)()

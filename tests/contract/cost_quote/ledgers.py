"""Ledgers for the suites: over memory and over PostgreSQL, each on a clock that the test moves."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from libs.kernel.clock import Clock
from libs.store.database import Database
from libs.store.migrations import migrate
from services.cost_quote.compose import SCHEMA, VERSIONS
from services.cost_quote.domain.budgets import Amounts, Asked, Declaration, HoldAsk, Mismatch
from services.cost_quote.ports import Budgets
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.budgets_postgres import PostgresBudgets
from tests.support.worlds import START, SteeredClock

EMPTY = (
    "TRUNCATE budget, hold, entry, checkpoint",
    "CREATE TABLE IF NOT EXISTS test_time (now timestamptz)",
    "TRUNCATE test_time",
    "CREATE OR REPLACE FUNCTION server_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM test_time'",
)
CNY = 10**9
"""Nanos of a yuan."""


@dataclass
class Bench:
    """A ledger and its clock."""

    budgets: Budgets
    clock: SteeredClock
    advance: Callable[[float], Awaitable[None]]
    close: Callable[[], Awaitable[None]]


class NotingBudgets(MemoryBudgets):
    """In memory; `whole` says of each look whether everything was asked for."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.whole: list[bool] = []

    async def mismatches(self, *, whole: bool = False) -> Sequence[Mismatch]:
        """See the port."""
        self.whole.append(whole)
        return await super().mismatches(whole=whole)


async def emptied(url: str) -> str:
    """The URL, migrated, without rows, on the test's time."""
    await migrate(url, schema=SCHEMA, versions=VERSIONS)
    database = Database(url, schema=SCHEMA)
    async with database.unit() as tx:
        for statement in EMPTY:
            await tx.execute(text(statement))
        await tx.execute(text("INSERT INTO test_time VALUES (:now)"), {"now": START})
    await database.close()
    return url


async def bench(url: str) -> Bench:
    """`memory:` or the URL of an emptied database."""
    clock = SteeredClock()
    if url == "memory:":
        memory = MemoryBudgets(clock)

        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        return Bench(memory, clock, advance, memory.close)
    database = Database(url, schema=SCHEMA)
    store = PostgresBudgets(database)

    async def advance_both(seconds: float) -> None:
        async with database.unit() as tx:
            await tx.execute(text("UPDATE test_time SET now = :now"), {"now": clock.advance(seconds)})

    async def close() -> None:
        await store.close()
        await database.close()

    return Bench(store, clock, advance_both, close)


def cny(cost: float = 0, attempts: int = 0, review_minutes: int = 0) -> Amounts:
    """Amounts in yuan."""
    return Amounts(int(cost * CNY), attempts, review_minutes)


def asked(cost: float = 0, attempts: int = 0, review_minutes: int = 0, **worth: float) -> Asked:
    """The same as a caller says it; `worth` beside the yuan, by currency."""
    rates = {name: int(value * CNY) for name, value in worth.items()}
    return Asked(int(cost * CNY), "CNY", attempts, review_minutes, {"CNY": int(cost * CNY), **rates})


def hold(hold_id: str, budget_id: str, cost: float = 0, **more: Any) -> HoldAsk:
    """A reservation of so many yuan."""
    return HoldAsk(hold_id, budget_id, asked(cost, **more), "a node")


def declaration(budget_id: str, parent_id: str = "", **more: Any) -> Declaration:
    """A budget in yuan."""
    return Declaration(budget_id, more.pop("level", "node"), parent_id, **{"currency": "CNY", **more})

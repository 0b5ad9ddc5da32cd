"""What the checks of the ledger of budgets take when it has grown: whole, and from checkpoint to checkpoint (COST-11).

    python -m tests.bench.bench_ledger [--calls 300000] [--moves 100] [--rounds 5] [--json]

A ledger of so many calls that ended, written by SQL: a Hold each, and an entry for its taking and one for its
settlement, in the budget of a tenant's month; a tenth of them in budgets of productions below that of another tenant,
with entries at both levels. Then, by turns on one server: the whole look, and the running one after so many new
movements. The first running look, which has no checkpoints yet, reads everything.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import uvloop

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.store.database import Database
from libs.store.migrations import migrate
from services.cost_quote.compose import SCHEMA, VERSIONS
from services.cost_quote.domain.budgets import Asked, Declaration, HoldAsk, SettleAsk
from services.cost_quote.store.budgets_postgres import PostgresBudgets

MONTH, PROJECT, PRODUCTIONS = "month", "project", 100
CENT = 10**7
LEAF = f"CASE WHEN n % 10 = 0 THEN 'production-' || n / 10 % {PRODUCTIONS} ELSE '{MONTH}' END"
HOLDS = f"""
INSERT INTO cost_quote.hold (id, budget_id, currency, asked_cost, asked_currency, cost, attempts, review_minutes,
  state, subject, settled_asked_cost, settled_asked_currency, settled_cost, settled_attempts, settled_review_minutes,
  created_at, finished_at)
SELECT 'call:' || n, {LEAF}, 'CNY', {2 * CENT}, 'CNY', {2 * CENT}, 1, 0,
  'settled', 'a call', {CENT}, 'CNY', {CENT}, 1, 0, now(), now()
FROM generate_series(1, $1::int) n
"""
ENTRIES = f"""
INSERT INTO cost_quote.entry (budget_id, sequence, kind, hold_id, held_cost, held_attempts, held_review_minutes,
  spent_cost, spent_attempts, spent_review_minutes, reason, request_id, created_at)
SELECT level.id, row_number() OVER (PARTITION BY level.id ORDER BY n, sign DESC), kind, 'call:' || n,
  sign * {2 * CENT}, sign, 0, CASE WHEN sign < 0 THEN {CENT} ELSE 0 END, CASE WHEN sign < 0 THEN 1 ELSE 0 END, 0,
  'a call', '', now()
FROM generate_series(1, $1::int) n CROSS JOIN (VALUES ('hold', 1), ('settle', -1)) AS moved(kind, sign)
JOIN cost_quote.budget leaf ON leaf.id = {LEAF} CROSS JOIN LATERAL unnest(leaf.path) AS level(id)
ORDER BY n, sign DESC
"""
FIGURES = """
UPDATE cost_quote.budget SET revision = s.entries, spent_cost = s.cost, spent_attempts = s.attempts
FROM (SELECT budget_id, count(*) AS entries, sum(spent_cost) AS cost, sum(spent_attempts) AS attempts
  FROM cost_quote.entry GROUP BY budget_id) s WHERE budget.id = s.budget_id
"""


async def grown(url: str, calls: int) -> tuple[Database, PostgresBudgets]:
    """A ledger of so many calls, as the database knows it after its own upkeep."""
    await migrate(url, schema=SCHEMA, versions=VERSIONS)
    database = Database(url, schema=SCHEMA)
    store = PostgresBudgets(database)
    for root in (MONTH, PROJECT):
        await store.create(Declaration(root, "tenant", currency="CNY"))
    for number in range(PRODUCTIONS):
        await store.create(Declaration(f"production-{number}", "project", PROJECT))
    connection = await asyncpg.connect(url)
    for statement, *values in ((HOLDS, calls), (ENTRIES, calls), (FIGURES,)):
        await connection.execute(statement, *values, timeout=600)
    await connection.execute("VACUUM ANALYZE cost_quote.hold, cost_quote.entry, cost_quote.budget", timeout=600)
    await connection.close()
    return database, store


async def move(store: PostgresBudgets, moves: int, numbers: Iterator[int]) -> None:
    """So many movements: half of them Holds, half their settlements, over the month and the productions."""
    names = [(f"new:{next(numbers)}", n) for n in range(moves // 2)]
    cost = Asked(CENT, "CNY", 1, 0, {"CNY": CENT})
    leaves = [MONTH if n % 10 else f"production-{n % PRODUCTIONS}" for _, n in names]
    await asyncio.gather(
        *(store.hold(HoldAsk(name, leaf, cost, "a call")) for (name, _), leaf in zip(names, leaves, strict=True))
    )
    await asyncio.gather(*(store.settle(SettleAsk(name, cost)) for name, _ in names))


async def timed(store: PostgresBudgets, *, whole: bool = False) -> float:
    """Milliseconds of a look, which finds nothing."""
    begun = time.perf_counter()
    assert not await store.mismatches(whole=whole), "the ledger does not add up"
    return (time.perf_counter() - begun) * 1000


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every figure."""
    with tempfile.TemporaryDirectory(prefix="pointsman-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with EmbeddedPostgres(folder / "pg", settings={"max_wal_size": "4GB"}) as server:
            connection = await asyncpg.connect(server.url)
            await connection.execute("CREATE DATABASE ledger")
            await connection.close()
            database, store = await grown(server.url_of("ledger"), options.calls)
            numbers = itertools.count()
            whole, running, still = [], [], []
            first = await timed(store)
            for _ in range(options.rounds):
                await move(store, options.moves, numbers)
                running.append(await timed(store))
                still.append(await timed(store))
                whole.append(await timed(store, whole=True))
            await store.close()
            await database.close()
    return {
        f"{options.calls:,} calls, whole: ms": round(statistics.median(whole), 1),
        "first running look: ms": round(first, 1),
        f"running look after {options.moves:,} movements: ms": round(statistics.median(running), 1),
        "running look after none: ms": round(statistics.median(still), 1),
        "whole to running": round(statistics.median(whole) / statistics.median(running)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The checks of a ledger of budgets that has grown.")
    parser.add_argument("--calls", type=int, default=300_000)
    parser.add_argument("--moves", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(measure(options))
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:60} {figure:>12,}")


if __name__ == "__main__":
    main()

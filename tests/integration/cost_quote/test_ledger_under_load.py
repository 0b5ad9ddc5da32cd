"""The ledger in PostgreSQL, with several processes' stores at one tree."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.telemetry import metrics, names
from services.cost_quote.app.check_ledger import CheckLedger
from services.cost_quote.compose import SCHEMA, VERSIONS
from services.cost_quote.domain.budgets import HoldAsk, Moved, ReleaseAsk, SettleAsk
from services.cost_quote.store.budgets_postgres import PostgresBudgets
from tests.contract.cost_quote.ledgers import asked, cny, declaration, hold

STORES = 4
CLAIMS = 200


@pytest.fixture
async def databases(pg_url: str) -> AsyncIterator[list[Database]]:
    """Connections as of several processes."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    made = [Database(pg_url, schema=SCHEMA) for _ in range(STORES)]
    yield made
    for database in made:
        await database.close()


@pytest.fixture
async def stores(databases: list[Database]) -> AsyncIterator[list[PostgresBudgets]]:
    """Stores as of several processes."""
    made = [PostgresBudgets(database) for database in databases]
    yield made
    for store in made:
        await store.close()


async def test_two_hundred_claims_of_four_processes_on_a_budget_for_seven(stores: list[PostgresBudgets]) -> None:
    """COST-9, COST-11: exactly 7 are taken, at all five levels, and the ledger is sound at every commit meanwhile."""
    parent = ""
    for level in ("project", "stage", "episode", "shot", "node"):
        limit = cny(7 if level == "shot" else 1000)
        await stores[0].create(declaration(level, parent, level=level, hard=limit))
        parent = level
    done = asyncio.Event()

    async def watch() -> int:
        looks = 0
        while not done.is_set():
            assert await stores[-1].mismatches() == []
            looks += 1
        return looks

    watching = asyncio.create_task(watch())
    claims = [stores[n % STORES].hold(hold(f"claim-{n}", "node", 1, attempts=1)) for n in range(CLAIMS)]
    outcomes = await asyncio.gather(*claims)
    done.set()
    assert await watching >= 1
    assert sum(isinstance(outcome, Moved) for outcome in outcomes) == 7
    budgets = await stores[0].find("", "", 0, 10)
    assert [budget.held for budget in budgets] == [cny(7, 7)] * 5
    assert {len(await stores[0].entries(budget.id, 0, CLAIMS)) for budget in budgets} == {7}


async def test_one_hold_asked_by_four_processes_at_once_is_one_hold(stores: list[PostgresBudgets]) -> None:
    """COST-9, COST-11: racing repeats, settlements and releases of one id end in one order, and the sums hold."""
    for name in ("a", "b"):
        await stores[0].create(declaration(name, hard=cny(100)))
    for n in range(20):
        same = [store.hold(hold(f"{n}", "a", 1)) for store in stores[:2]]
        other = [store.hold(HoldAsk(f"{n}", "b", asked(1), "node")) for store in stores[2:]]
        ends = [stores[0].settle(SettleAsk(f"{n}", asked(1))), stores[1].release(ReleaseAsk(f"{n}"))]
        answers = await asyncio.gather(*same, *other, *ends, return_exceptions=True)
        assert all(isinstance(answer, Fault) for answer in answers if isinstance(answer, BaseException)), answers
    assert await stores[0].mismatches() == []
    held = [budget.used.cost for budget in await stores[0].find("", "", 0, 10)]
    assert sum(held) <= 20 * cny(1).cost


async def test_no_entry_is_ever_changed(stores: list[PostgresBudgets], databases: list[Database]) -> None:
    """COST-11: the database itself refuses to change or delete what was written."""
    await stores[0].create(declaration("a"))
    await stores[0].hold(hold("1", "a", 1))
    for statement in ("UPDATE entry SET held_cost = 0", "DELETE FROM entry"):
        with pytest.raises(DBAPIError, match="never changed"):
            async with databases[0].unit() as tx:
                await tx.execute(text(statement))


async def test_a_hand_in_the_database_is_noticed(
    stores: list[PostgresBudgets], databases: list[Database], caplog: pytest.LogCaptureFixture
) -> None:
    """COST-11: figures that contradict entries or Holds are told, each by its budget, in the log and as a metric."""
    await stores[0].create(declaration("a", hard=cny(5)))
    await stores[0].create(declaration("b", "a"))
    await stores[0].hold(hold("1", "b", 1))
    check, gauge = CheckLedger(stores[0]), metrics.PROCESS.gauge(names.LEDGER_MISMATCHES)
    await check()
    assert gauge._value.get() == 0
    async with databases[0].unit() as tx:
        await tx.execute(text("UPDATE budget SET held_cost = held_cost + 9000000000 WHERE id = 'a'"))
        await tx.execute(text("UPDATE budget SET revision = 7 WHERE id = 'b'"))
    found = await stores[0].mismatches()
    assert [(mismatch.budget_id, mismatch.what) for mismatch in found] == [
        ("a", "cost is beyond the hard limit"),
        ("a", "its Holds do not sum up to what is held and spent"),
        ("a", "its entries do not sum up to what is held and spent"),
        ("b", "its entries are not numbered 1 to its revision"),
    ]
    await check()
    assert gauge._value.get() == 4
    assert "ledger_mismatch: budget a: cost is beyond the hard limit" in caplog.text
    gauge.set(0)

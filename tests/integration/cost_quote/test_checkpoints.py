"""The ledger in PostgreSQL is proven from checkpoint to checkpoint; hands in the database, before and after one."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from sqlalchemy import text

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.telemetry import metrics, names
from services.cost_quote.app.check_ledger import CheckLedger
from services.cost_quote.compose import SCHEMA, VERSIONS
from services.cost_quote.domain.budgets import Mismatch, ReleaseAsk, SettleAsk
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.budgets_postgres import PostgresBudgets
from tests.contract.cost_quote.ledgers import asked, cny, declaration, hold
from tests.support.waiting import eventually_async
from tests.support.worlds import SteeredClock

ENTRIES = "its entries do not sum up to what is held and spent"
HOLDS = "its Holds do not sum up to what is held and spent"
NUMBERS = "its entries are not numbered 1 to its revision"
BELOW = "less than nothing is held after one of its entries"
BRANCH = {("p", HOLDS), ("e", HOLDS), ("s", HOLDS)}
AGE = timedelta(days=1)
MOVERS, MOVES = 3, 60


@pytest.fixture
async def databases(pg_url: str) -> AsyncIterator[list[Database]]:
    """Connections as of several processes."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    made = [Database(pg_url, schema=SCHEMA) for _ in range(MOVERS + 2)]
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


class Overgrown(MemoryBudgets):
    """Something is wrong in what came since, and what is due cannot be read in time."""

    async def mismatches(self, *, whole: bool = False) -> Sequence[Mismatch]:
        """See the port."""
        return [Mismatch("b", "it is wrong")]

    async def reread(self, age: timedelta) -> Sequence[Mismatch] | None:
        """See the port."""
        raise Fault.of("governance_backend_down", "it took too long")


async def moved(store: PostgresBudgets, era: str) -> None:
    """A Hold that is settled, one that is corrected, one that is released, one that is open; `late` is settled, and
    `ending` open."""
    for name in ("ending", "settled", "corrected", "released", "open", "late"):
        await store.hold(hold(f"{era}-{name}", "s", 2, attempts=1))
    await store.settle(SettleAsk(f"{era}-settled", asked(3, attempts=1)))
    await store.settle(SettleAsk(f"{era}-late", asked(2, attempts=1)))
    await store.settle(SettleAsk(f"{era}-corrected", asked(1, attempts=1)))
    await store.settle(SettleAsk(f"{era}-corrected", asked(4, attempts=1), "found later", correct=True))
    await store.release(ReleaseAsk(f"{era}-released"))


@pytest.fixture
async def store(stores: list[PostgresBudgets]) -> PostgresBudgets:
    """A tree of three levels: `old` things have been looked at, `new` ones have not, nor a late end and correction."""
    for name, parent in (("p", ""), ("e", "p"), ("s", "e")):
        await stores[0].create(declaration(name, parent, hard=cny(1000)))
    await moved(stores[0], "old")
    assert await stores[0].mismatches() == []
    await stores[0].release(ReleaseAsk("old-ending"))
    await moved(stores[0], "new")
    await stores[0].settle(SettleAsk("old-late", asked(5), "found late", correct=True))
    return stores[0]


async def by_hand(database: Database, *statements: str) -> None:
    """What the guard of the entries would refuse."""
    async with database.unit() as tx:
        await tx.execute(text("ALTER TABLE entry DISABLE TRIGGER entry_is_final"))
        for statement in statements:
            await tx.execute(text(statement))
        await tx.execute(text("ALTER TABLE entry ENABLE TRIGGER entry_is_final"))


async def checkpoints(database: Database) -> dict[str, int]:
    """Up to which entry each is proven."""
    async with database.read() as tx:
        return {row.budget_id: row.sequence for row in await tx.execute(text("SELECT * FROM checkpoint"))}


async def waits(database: Database) -> bool:
    """Whether somebody waits for a lock."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with database.read() as tx:
        return (await tx.execute(text(waiting))).first() is not None


async def revisions(store: PostgresBudgets) -> dict[str, int]:
    """How far each has come."""
    return {budget.id: budget.revision for budget in await store.find("", "", 0, 100)}


def told(found: Sequence[Mismatch] | None) -> set[tuple[str, str]]:
    """(budget, what is wrong)."""
    assert found is not None
    return {(mismatch.budget_id, mismatch.what) for mismatch in found}


MOVE = "concat_ws('/', budget_id, hold_id, kind)"
PRESENT = {
    "UPDATE budget SET spent_cost = spent_cost + 1 WHERE id = 'p'": {("p", ENTRIES)},
    "UPDATE budget SET held_attempts = held_attempts - 1 WHERE id = 's'": {("s", ENTRIES), ("s", HOLDS)},
    "UPDATE budget SET revision = revision + 1 WHERE id = 'e'": {("e", NUMBERS)},
    "UPDATE budget SET revision = 3 WHERE id = 'e'": {("e", NUMBERS)},
    "UPDATE budget SET hard_cost = 1 WHERE id = 'e'": {("e", "cost is beyond the hard limit")},
    "UPDATE budget SET parent_id = 'p' WHERE id = 's'": {("s", "it does not hang where its path says")},
    "UPDATE budget SET currency = 'USD' WHERE id = 's'": {("s", "it differs from its parent in currency, or is older")},
    "UPDATE hold SET cost = cost + 1 WHERE id = 'old-open'": BRANCH,
    "UPDATE hold SET state = 'released' WHERE id = 'old-open'": BRANCH,
    "DELETE FROM hold WHERE id = 'new-open'": BRANCH,
    "DELETE FROM hold WHERE id = 'new-settled'": BRANCH,
    "UPDATE hold SET settled_cost = 1 WHERE id = 'new-settled'": BRANCH,
    "UPDATE hold SET settled_attempts = 9 WHERE id = 'new-corrected'": BRANCH,
    "UPDATE hold SET settled_cost = 1 WHERE id = 'new-released'": BRANCH,
    "UPDATE hold SET settled_cost = NULL WHERE id = 'old-late'": BRANCH,
    f"UPDATE entry SET spent_cost = spent_cost + 1 WHERE {MOVE} = 'p/new-settled/settle'": {
        ("p", ENTRIES),
        ("p", HOLDS),
    },
    f"DELETE FROM entry WHERE {MOVE} = 'e/new-released/hold'": {("e", NUMBERS), ("e", ENTRIES)},
    f"UPDATE entry SET held_cost = -99 * 10^9 WHERE {MOVE} = 'p/new-settled/hold'": {("p", BELOW), ("p", ENTRIES)},
    "UPDATE checkpoint SET spent_cost = spent_cost + 1 WHERE budget_id = 'p'": {("p", ENTRIES), ("p", HOLDS)},
}
"""What is found by the next look."""
PAST = {
    "UPDATE hold SET settled_cost = 1 WHERE id = 'old-settled'": HOLDS,
    "UPDATE hold SET settled_cost = 1 WHERE id = 'old-released'": HOLDS,
    "DELETE FROM hold WHERE id = 'old-corrected'": HOLDS,
    f"UPDATE entry SET spent_cost = spent_cost + 1 WHERE {MOVE} = 's/old-corrected/correction'": ENTRIES,
    f"DELETE FROM entry WHERE {MOVE} = 's/old-released/release'": NUMBERS,
}
"""What is not, until a budget is read from its first entry."""


@pytest.mark.parametrize("hand", PRESENT)
async def test_a_hand_in_the_present_is_found_by_the_next_look(
    store: PostgresBudgets, databases: list[Database], hand: str
) -> None:
    """COST-11: in a budget, an open Hold, or what came since the checkpoint; the finding stays until it is mended,
    and what is sound goes on."""
    await by_hand(databases[0], hand)
    for _ in range(2):
        found = await store.mismatches()
        assert told(found) == PRESENT[hand]
        whole = await store.mismatches(whole=True)
        assert {mismatch.budget_id for mismatch in whole} <= {mismatch.budget_id for mismatch in found}
        assert bool(whole) == ("UPDATE checkpoint" not in hand)
    proven, now = await checkpoints(databases[0]), await revisions(store)
    sound = now.keys() - {mismatch.budget_id for mismatch in found}
    assert {name: proven[name] for name in sound} == {name: now[name] for name in sound}


@pytest.mark.parametrize("hand", PAST)
async def test_a_hand_in_the_past_is_found_by_reading_anew(
    store: PostgresBudgets, databases: list[Database], hand: str
) -> None:
    """COST-11: the look of an operator finds it at once, the running one when its budget is due; from then on each."""
    await by_hand(
        databases[0], hand, "UPDATE checkpoint SET whole_at = whole_at - interval '2 days' WHERE budget_id = 's'"
    )
    assert await store.mismatches() == []
    again = await store.reread(AGE)
    assert ("s", PAST[hand]) in told(again)
    assert "s" not in await checkpoints(databases[0])
    assert await store.reread(AGE) is None
    assert told(await store.mismatches()) == told(again)


async def test_what_a_whole_look_finds_is_found_by_every_look_until_it_is_mended(
    store: PostgresBudgets, databases: list[Database]
) -> None:
    """COST-11: the budgets it finds wrong lose their checkpoints, and have them again once they are sound."""
    hand = "UPDATE hold SET settled_cost = settled_cost {} 1 WHERE id = 'old-settled'"
    await by_hand(databases[0], hand.format("+"))
    assert await store.mismatches() == []
    whole = await store.mismatches(whole=True)
    assert told(whole) == BRANCH
    assert await checkpoints(databases[0]) == {}
    assert told(await store.mismatches()) == told(await store.mismatches()) == told(whole)
    await by_hand(databases[0], hand.format("-"))
    assert await store.mismatches() == await store.mismatches(whole=True) == []
    assert await checkpoints(databases[0]) == await revisions(store)


async def test_a_hold_that_no_entry_tells_of_is_found_by_a_whole_look(
    store: PostgresBudgets, databases: list[Database]
) -> None:
    """COST-11: it stands in nothing that comes since; reading Holds one by one from the entries does not meet it."""
    columns = "budget_id, currency, asked_cost, asked_currency, cost, attempts, review_minutes, subject, created_at"
    booked = "settled_cost, settled_attempts, settled_review_minutes"
    await by_hand(
        databases[0],
        f"INSERT INTO hold (id, state, {columns}, {booked}) SELECT 'nobody''s', state, {columns}, {booked} "
        "FROM hold WHERE id = 'old-settled'",
    )
    assert await store.mismatches() == []
    assert told(await store.mismatches(whole=True)) == BRANCH


async def test_a_level_that_was_passed_over_is_found(store: PostgresBudgets, databases: list[Database]) -> None:
    """COST-11: a Hold that moved nothing at one level, neither figures nor entries: what is spent there is not what is
    spent below it and by Holds of its own."""
    await store.hold(hold("own", "e", 1))
    await store.settle(SettleAsk("own", asked(1)))
    assert await store.mismatches() == []
    before = await revisions(store)
    await store.hold(hold("last", "s", 2))
    await store.settle(SettleAsk("last", asked(2)))
    await by_hand(
        databases[0],
        "DELETE FROM entry WHERE budget_id = 'e' AND hold_id = 'last'",
        f"UPDATE budget SET revision = {before['e']}, spent_cost = spent_cost - 2 * 10^9 WHERE id = 'e'",
    )
    assert told(await store.mismatches()) == {("p", HOLDS), ("e", HOLDS)}
    assert told(await store.mismatches(whole=True)) == {("e", HOLDS)}


async def test_the_budget_that_was_not_read_from_its_first_entry_for_longest_is_the_next(
    store: PostgresBudgets, databases: list[Database]
) -> None:
    """COST-11: one a round, the oldest first, none that was read within the day; it stays proven meanwhile."""
    ages = "UPDATE checkpoint SET whole_at = now() - CASE budget_id WHEN 'p' THEN interval '2 days' WHEN 's' THEN "
    await by_hand(databases[0], f"{ages} interval '3 days' ELSE interval '1 hour' END")
    wanted = text("SELECT budget_id FROM checkpoint WHERE whole_at < now() - interval '1 day' ORDER BY whole_at")
    due = []
    for _ in range(3):
        async with databases[0].read() as tx:
            due.append([row.budget_id for row in await tx.execute(wanted)])
        await store.reread(AGE)
        assert await checkpoints(databases[0]) == await revisions(store)
    assert due == [["s", "p"], ["p"], []]
    assert await store.reread(AGE) is None


async def test_a_look_that_was_overtaken_takes_nothing_back(
    stores: list[PostgresBudgets], databases: list[Database]
) -> None:
    """COST-11: whoever saw less writes last, and the checkpoint stays; meanwhile Holds go on."""
    await stores[0].create(declaration("p"))
    await stores[0].hold(hold("1", "p", 1))
    assert await stores[0].mismatches() == []
    await stores[0].hold(hold("2", "p", 1))
    async with databases[1].unit() as tx:
        await tx.execute(text("SELECT 1 FROM checkpoint FOR UPDATE"))
        late = asyncio.create_task(stores[0].mismatches())
        await eventually_async(lambda: waits(databases[2]))
        await stores[0].hold(hold("3", "p", 1))
        assert (await tx.execute(text("SELECT count(*) FROM prove_ledger(NULL)"))).scalar() == 0
    assert await late == []
    assert await checkpoints(databases[0]) == await revisions(stores[0]) == {"p": 3}


async def test_two_that_look_while_holds_move_find_nothing(
    stores: list[PostgresBudgets], databases: list[Database]
) -> None:
    """COST-11: at every commit the ledger is sound from whichever checkpoint; two looks neither stop one another nor a
    Hold, no checkpoint goes back, and in the end each is at its budget's revision."""
    for name, parent in (("p", ""), ("e", "p"), ("s", "e"), ("t", "e"), ("other", "")):
        await stores[0].create(declaration(name, parent, hard=cny(0 if name == "other" else 500)))
    done, seen = asyncio.Event(), [dict[str, int]()]

    async def watch(store: PostgresBudgets, age: timedelta) -> int:
        looks = 0
        while not done.is_set():
            assert not await store.mismatches()
            assert not await store.reread(age)
            now = await checkpoints(databases[0])
            assert all(now[name] >= sequence for name, sequence in seen[-1].items())
            seen.append(now)
            looks += 1
        return looks

    async def move(store: PostgresBudgets, dice: random.Random) -> None:
        for n in range(MOVES):
            name = f"{dice.randrange(9)}-{n}"
            try:
                await store.hold(hold(name, dice.choice(("s", "t", "e", "other")), dice.randrange(4)))
                if dice.random() < 0.3:
                    await store.release(ReleaseAsk(name))
                elif dice.random() < 0.8:
                    await store.settle(SettleAsk(name, asked(dice.randrange(6))))
                    await store.settle(SettleAsk(f"{dice.randrange(9)}-{dice.randrange(n + 1)}", asked(2), "", True))
            except Fault as fault:
                if fault.code not in ("conflict", "already_exists", "not_found"):
                    raise

    watching = [asyncio.create_task(watch(store, timedelta(0))) for store in stores[:2]]
    await asyncio.gather(*(move(store, random.Random(n)) for n, store in enumerate(stores[2:])))
    done.set()
    assert all(looks > 1 for looks in await asyncio.gather(*watching))
    assert await stores[0].mismatches() == await stores[0].mismatches(whole=True) == []
    assert await checkpoints(databases[0]) == await revisions(stores[0])


async def test_a_round_tells_what_came_since_also_where_reading_anew_takes_too_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """COST-11: one budget that has grown too large for a look hides nothing."""
    check, gauge = CheckLedger(Overgrown(SteeredClock())), metrics.PROCESS.gauge(names.LEDGER_MISMATCHES)
    await check()
    assert gauge._value.get() == 1
    assert "ledger_mismatch: budget b: it is wrong" in caplog.text
    assert "a budget could not be read from its first entry" in caplog.text
    gauge.set(0)


async def test_the_round_tells_what_either_of_its_looks_found(
    store: PostgresBudgets, databases: list[Database], caplog: pytest.LogCaptureFixture
) -> None:
    """COST-11: what came since, and the one budget that was due; an error in the log and a number that alerts watch."""
    check, gauge = CheckLedger(store), metrics.PROCESS.gauge(names.LEDGER_MISMATCHES)
    await by_hand(databases[0], "UPDATE hold SET settled_cost = 1 WHERE id = 'old-settled'")
    await check()
    assert gauge._value.get() == 0
    await by_hand(databases[0], "UPDATE checkpoint SET whole_at = now() - interval '2 days' WHERE budget_id = 's'")
    for _ in range(2):
        await check()
        assert gauge._value.get() == 1
    assert caplog.text.count(f"ledger_mismatch: budget s: {HOLDS}") == 2
    gauge.set(0)

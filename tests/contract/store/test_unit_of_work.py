"""What every context may rely on when it writes and reads."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.lane import fetch_within
from tests.contract.store.toy.tables import notes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def add(tx: AsyncConnection, id: str, body: Any = None) -> None:
    await tx.execute(insert(notes).values(id=id, revision=1, body=body or {}, created_at=NOW))


async def count(database: Database) -> int:
    async with database.read() as tx:
        return (await tx.execute(select(func.count()).select_from(notes))).scalar_one()


async def test_a_unit_commits_at_its_end(database: Database) -> None:
    """Work is visible to others after the unit, not before."""
    async with database.unit() as tx:
        await add(tx, "a")
        assert await count(database) == 0
    assert await count(database) == 1


async def test_any_exception_rolls_the_unit_back(database: Database) -> None:
    """Both or neither: a refusal after a write leaves no trace, and the exception arrives as it was."""

    async def work() -> None:
        async with database.unit() as tx:
            await add(tx, "a")
            raise Fault.of("fenced", "a newer worker owns this")

    with pytest.raises(Fault) as caught:
        await work()
    assert caught.value.code == "fenced"
    assert await count(database) == 0


async def test_cancellation_rolls_back_and_returns_the_connection(database: Database) -> None:
    """A caller that goes away holds neither locks nor connections."""
    inside = asyncio.Event()

    async def work() -> None:
        async with database.unit() as tx:
            await add(tx, "a")
            inside.set()
            await tx.execute(text("SELECT pg_sleep(0.4)"))

    for _ in range(4):  # more often than the pool has connections
        inside.clear()
        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await count(database) == 0
    async with database.read() as tx:
        query = text("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
        assert (await tx.execute(query)).scalar_one() == 0


async def test_a_read_is_one_snapshot(database: Database) -> None:
    """Two statements of one read see the same moment, whatever is committed in between."""
    async with database.read() as tx:
        before = (await tx.execute(select(func.count()).select_from(notes))).scalar_one()
        async with database.unit() as other:
            await add(other, "a")
        assert (await tx.execute(select(func.count()).select_from(notes))).scalar_one() == before


async def test_a_read_cannot_write(database: Database) -> None:
    """A write inside a read is a bug and is refused by the database, not translated to a Fault."""
    with pytest.raises(DBAPIError, match="read-only"):
        async with database.read() as tx:
            await add(tx, "a")


async def test_a_pooled_connection_forgets_that_it_read(database: Database) -> None:
    """After reads, a unit on the same connection writes and is READ COMMITTED again."""
    for _ in range(3):
        await count(database)
    async with database.unit() as tx:
        await add(tx, "a")
        assert (await tx.execute(text("SHOW transaction_isolation"))).scalar_one() == "read committed"


@pytest.mark.parametrize("row", [{"id": "a\x00b"}, {"id": "a", "body": {"name": "a\x00b"}}])
async def test_a_nul_character_is_refused_and_no_bug(database: Database, row: dict[str, Any]) -> None:
    """EDG-3: a NUL in a text or a document, which callers over gRPC may send anywhere, is theirs to mend."""
    with pytest.raises(Fault) as caught:
        async with database.unit() as tx:
            await add(tx, **row)
    assert caught.value.code == "validation_failed"


async def test_an_equal_row_is_a_conflict(database: Database) -> None:
    """ERR-2: a broken uniqueness rule becomes `conflict` and names the constraint; nothing of the row is told."""
    async with database.unit() as tx:
        await add(tx, "secret-id")
    with pytest.raises(Fault) as caught:
        async with database.unit() as tx:
            await add(tx, "secret-id")
    assert caught.value.code == "conflict"
    assert caught.value.metadata["constraint"] == "notes_pkey"
    assert "secret-id" not in caught.value.message


async def test_a_lock_is_not_waited_for_for_ever(database: Database) -> None:
    """A row that somebody holds makes the unit fail as unavailable after the lock timeout."""
    async with database.unit() as tx:
        await add(tx, "a")
    async with database.unit() as holder:
        await holder.execute(update(notes).values(revision=2))
        with pytest.raises(Fault) as caught:
            async with database.unit() as other:
                await other.execute(update(notes).values(revision=3))
    assert (caught.value.code, caught.value.retryable) == ("governance_backend_down", True)


async def test_a_statement_does_not_run_for_ever(database: Database) -> None:
    """The server ends a statement that takes longer than its bound."""
    with pytest.raises(Fault) as caught:
        async with database.unit() as tx:
            await tx.execute(text("SELECT pg_sleep(30)"))
    assert caught.value.code == "governance_backend_down"


async def test_a_statement_may_be_given_longer(database: Database) -> None:
    """By the server and by the client, for its unit alone."""
    async with database.unit() as tx:
        await fetch_within(tx, "SELECT pg_sleep(2.6)", limit_s=30.0)
    async with database.unit() as tx:
        assert (await tx.execute(text("SHOW statement_timeout"))).scalar() == "500ms"
    with pytest.raises(Fault) as caught:
        async with database.read() as snapshot:
            await fetch_within(snapshot, "SELECT pg_sleep(30)", limit_s=0.1)
    assert caught.value.code == "governance_backend_down"


async def test_a_full_pool_is_not_waited_for_for_ever(database: Database) -> None:
    """Work beyond the pool fails as unavailable after the pool timeout."""
    async with database.unit() as one, database.unit() as two:
        await one.execute(text("SELECT 1"))
        await two.execute(text("SELECT 1"))
        with pytest.raises(Fault) as caught:
            await database.ping()
    assert caught.value.code == "governance_backend_down"
    await database.ping()


async def test_an_absent_server_is_unavailable() -> None:
    """A database that is not there is a Fault, with and without a socket in the way."""
    for url in ("postgresql://u@/db?host=/nonexistent", "postgresql://u@127.0.0.1:1/db"):
        database = Database(url, schema="toy")
        with pytest.raises(Fault) as caught:
            await database.ping()
        assert caught.value.code == "governance_backend_down"
        await database.close()


async def test_connections_that_the_server_closed_are_not_handed_out(database: Database) -> None:
    """After the server has dropped the sessions, the next unit works: a closed connection is noticed at checkout."""
    async with database.unit() as one, database.unit() as two:
        pids = {(await tx.execute(text("SELECT pg_backend_pid()"))).scalar_one() for tx in (one, two)}
    outside = Database(database.url, schema="toy")
    async with outside.unit() as tx:
        for pid in pids:
            await tx.execute(text("SELECT pg_terminate_backend(:pid, 1000)"), {"pid": pid})
    await outside.close()
    async with database.unit() as tx:
        await add(tx, "a")
        assert (await tx.execute(text("SELECT pg_backend_pid()"))).scalar_one() not in pids


async def test_a_connection_lost_inside_a_unit_is_unavailable(database: Database) -> None:
    """A server that goes away in the middle is a Fault, and the unit is not run again by itself."""
    runs = 0

    async def work(tx: AsyncConnection) -> None:
        nonlocal runs
        runs += 1
        await tx.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(Fault) as caught:
        await database.run(work)
    assert caught.value.code == "governance_backend_down"
    assert runs == 1


async def test_a_deadlock_is_run_again(database: Database) -> None:
    """Two units that lock in opposite order both succeed: the victim is run again as a whole."""
    async with database.unit() as tx:
        await add(tx, "a")
        await add(tx, "b")
        await tx.execute(text("ALTER DATABASE " + (await name(tx)) + " SET deadlock_timeout = '10ms'"))
    await database.close()  # new sessions read the setting
    both = asyncio.Barrier(2)
    runs = 0

    async def crossing(first: str, second: str) -> None:
        met = False

        async def work(tx: AsyncConnection) -> None:
            nonlocal met, runs
            runs += 1
            await tx.execute(update(notes).where(notes.c.id == first).values(revision=notes.c.revision + 1))
            if not met:
                met = True
                await both.wait()
            await tx.execute(update(notes).where(notes.c.id == second).values(revision=notes.c.revision + 1))

        await database.run(work)

    await asyncio.gather(crossing("a", "b"), crossing("b", "a"))
    assert runs > 2
    async with database.read() as tx:
        assert (await tx.execute(select(notes.c.revision).order_by(notes.c.id))).scalars().all() == [3, 3]


async def name(tx: AsyncConnection) -> str:
    return (await tx.execute(text("SELECT current_database()"))).scalar_one()


async def test_retries_end(database: Database) -> None:
    """A unit that always meets a serialization failure ends in `revision_conflict`, which may be tried later."""
    runs = 0

    async def work(tx: AsyncConnection) -> None:
        nonlocal runs
        runs += 1
        await tx.execute(text("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$"))

    with pytest.raises(Fault) as caught:
        await database.run(work, attempts=3)
    assert (caught.value.code, caught.value.retryable) == ("revision_conflict", True)
    assert runs == 3


async def test_json_takes_exact_amounts_and_times(database: Database) -> None:
    """JSON columns take what canonical JSON takes: money stays exact, times are UTC."""
    async with database.unit() as tx:
        await add(tx, "a", {"amount": Decimal("1.10"), "at": NOW})
    async with database.read() as tx:
        body = (await tx.execute(select(notes.c.body))).scalar_one()
    assert body == {"amount": "1.10", "at": "2026-01-01T00:00:00Z"}


async def test_a_quiet_context_gives_connections_back(pg_empty_url: str) -> None:
    """OPS-2: connections of a burst are closed once one at a time is enough again; those in use are left alone."""
    database = Database(pg_empty_url, schema="public", bounds=Bounds(pool_size=4, quiet_s=0.0))
    try:
        async with database.unit(), database.unit(), database.unit():
            assert database.connections == 3
        await database.ping()  # one was enough: the burst's are closed
        assert database.connections == 0
        async with database.unit() as held:
            await database.ping()
            assert database.connections == 2
            await held.execute(text("SELECT 1"))
        await database.ping()
        await database.ping()
        assert database.connections <= 1
    finally:
        await database.close()

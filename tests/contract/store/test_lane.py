"""A lane: one connection, one round trip, each statement a transaction of its own."""

import asyncio
import contextlib
import os
import signal

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.faults.fault import Fault
from libs.store.database import Database
from tests.support.postgres import embedded_server
from tests.support.waiting import eventually


async def test_statements_follow_one_another_and_commit(pg_empty_url: str) -> None:
    """OPS-4: concurrent fetches take turns on one connection; what a statement wrote is there for everybody."""
    database = Database(pg_empty_url, schema="public")
    lane = database.lane()
    await lane.fetch("CREATE TABLE kept (number int)")
    await asyncio.gather(*[lane.fetch("INSERT INTO kept VALUES ($1)", number) for number in range(5)])
    other = database.lane()
    assert [row["number"] for row in await other.fetch("SELECT number FROM kept ORDER BY 1")] == [0, 1, 2, 3, 4]
    await lane.close()
    await other.close()
    await database.close()


async def test_a_broken_connection_is_opened_anew(pg_empty_url: str) -> None:
    """CAP-12: a statement on a broken connection is a Fault; the next one finds a new connection."""
    database = Database(pg_empty_url, schema="public")
    lane, killer = database.lane(), database.lane()
    (row,) = await lane.fetch("SELECT pg_backend_pid() AS pid")
    await killer.fetch("SELECT pg_terminate_backend($1, 5000)", row["pid"])
    with contextlib.suppress(
        Fault
    ):  # whether the loss is noticed by this statement or before it is the driver's chance
        await lane.fetch("SELECT 1")
    assert len(await lane.fetch("SELECT 1")) == 1
    await lane.close()
    await killer.close()
    await database.close()


async def test_a_lane_by_index_reads_no_table_from_end_to_end(pg_empty_url: str) -> None:
    """PRF-5: over a table that was empty when its plan was made, too; on every connection that it opens."""
    database = Database(pg_empty_url, schema="public")
    lane = database.lane(by_index=True)
    await lane.fetch("CREATE TABLE kept (number int PRIMARY KEY)")
    for _ in range(2):
        plan = await lane.fetch("EXPLAIN SELECT number FROM kept WHERE number < 5")
        assert not any("Seq Scan" in row[0] for row in plan)
        await lane.close()
    assert any("Seq Scan" in row[0] for row in await database.lane().fetch("EXPLAIN SELECT number FROM kept"))
    await database.close()


async def test_a_connection_is_found_again_after_a_database_that_was_away() -> None:
    """CAP-12: while nobody can connect every statement is a Fault; afterwards the next one is served."""
    async with embedded_server() as server:
        database = Database(server.url, schema="public")
        lane = database.lane()
        await lane.fetch("SELECT 1")
        os.kill(server.pid, signal.SIGQUIT)
        await eventually(lambda: not server.is_running)
        for _ in range(3):
            with pytest.raises(Fault, match="governance_backend_down"):
                await lane.fetch("SELECT 1")
        await server.ensure_running()
        assert len(await lane.fetch("SELECT 1")) == 1
        await lane.close()
        await database.close()


async def test_serialization_failures_are_run_again(pg_empty_url: str) -> None:
    """CAP-1: a statement that says it must run again does, a bounded number of times."""
    database = Database(pg_empty_url, schema="public")
    lane = database.lane()
    await lane.fetch("CREATE SEQUENCE tries")
    await lane.fetch("""
        CREATE FUNCTION stubborn(most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE n bigint := nextval('tries');
        BEGIN
          IF n < most THEN RAISE EXCEPTION 'again' USING ERRCODE = 'serialization_failure'; END IF;
          RETURN n;
        END $$
    """)
    assert [row["n"] for row in await lane.fetch("SELECT stubborn(3) AS n")] == [3]
    with pytest.raises(Fault, match="revision_conflict"):
        await lane.fetch("SELECT stubborn(100) AS n")
    await lane.close()
    await database.close()


async def test_a_database_that_is_away_is_a_fault() -> None:
    """CAP-12: no answer is `governance_backend_down`, retry after 5 s."""
    lane = Database("postgresql://nobody@/none?host=/nowhere", schema="public").lane()
    with pytest.raises(Fault) as raised:
        await lane.fetch("SELECT 1")
    assert (raised.value.code, raised.value.retry_after_ms) == ("governance_backend_down", 5000)
    await lane.close()


async def test_a_wrong_type_is_a_bug_and_no_absence(pg_empty_url: str) -> None:
    """CAP-12: what the driver cannot send is our own mistake: no Fault says that the database is away, and in a group
    it is one member's own."""
    database = Database(pg_empty_url, schema="public")
    with pytest.raises(asyncpg.DataError):
        await database.lane().fetch("SELECT $1::int", "seven")
    with pytest.raises(DBAPIError):
        async with database.unit() as tx:
            await tx.execute(text("SELECT CAST(:number AS int)"), {"number": "seven"})
    await database.close()

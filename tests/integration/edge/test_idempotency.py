"""One key, one Run: through HTTP, over a real database, at one replica and at two."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.engine import Bounds
from services.runs.store.postgres import PostgresRuns
from tests.contract.edge.test_problems import check
from tests.contract.runs.test_run_stores import add, new_run
from tests.support.front import Replica, front
from tests.support.waiting import eventually
from tests.support.worlds import CountedIds

ORDER = {"model": "clip", "input": {"prompt": "a crane at dawn", "duration_s": 5}}
KEY = {"Idempotency-Key": "order-17"}


@pytest.fixture
async def two(pg_url: str, tmp_path: Path) -> AsyncIterator[list[Replica]]:
    """Two replicas."""
    async with front(pg_url, tmp_path, replicas=2) as replicas:
        yield replicas


async def rows(url: str, table: str) -> int:
    """How many rows a table of runs has."""
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(f"SELECT count(*) FROM runs.{table}"))
    finally:
        await connection.close()


async def test_fifty_at_once_make_one_run(two: list[Replica], pg_url: str) -> None:
    """IDEM-1: fifty concurrent creations with one key, at two replicas, are one Run; all but one say so."""
    async with two[0].visitor() as one, two[1].visitor() as other:
        answers = await asyncio.gather(
            *((one, other)[number % 2].post("/v1/runs", json=ORDER, headers=KEY) for number in range(50))
        )
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
        check(await one.post("/v1/runs", json=ORDER | {"labels": {"a": "b"}}, headers=KEY), 422, "idempotency_conflict")
    assert two[0].routing.validated <= 2, "each replica does the work once at most"
    assert (await rows(pg_url, "runs"), await rows(pg_url, "run_keys")) == (1, 1)


async def test_what_failed_is_not_remembered(two: list[Replica], pg_url: str) -> None:
    """IDEM-2: a 5xx and a validation failure leave nothing under the key; those who waited for it try themselves."""
    routing = two[0].routing
    async with two[0].visitor() as client:
        check(await client.post("/v1/runs", json={"model": "clip"}, headers=KEY), 422, "validation_failed")
        routing.refusal = RuntimeError("a bug")
        check(await client.post("/v1/runs", json=ORDER, headers=KEY), 500, "internal")
        routing.refusal = Fault.of("governance_backend_down", "away")
        check(await client.post("/v1/runs", json=ORDER, headers=KEY), 503, "governance_backend_down")
        assert await rows(pg_url, "run_keys") == 0
        routing.open.clear()
        first = asyncio.create_task(client.post("/v1/runs", json=ORDER, headers=KEY))
        await eventually(lambda: routing.validated == 3)
        waiting = asyncio.create_task(client.post("/v1/runs", json=ORDER | {"labels": {"a": "b"}}, headers=KEY))
        routing.open.set()
        check(await first, 503, "governance_backend_down")
        check(await waiting, 503, "governance_backend_down")
        routing.refusal = None
        made = await client.post("/v1/runs", json=ORDER | {"labels": {"a": "b"}}, headers=KEY)
    assert (made.status_code, "idempotency-replayed" in made.headers) == (202, False)


async def test_the_row_of_a_key_is_waited_for(two: list[Replica], pg_url: str) -> None:
    """IDEM-1: a key that another replica is about to commit is waited for, and found: key and Run in one commit."""
    connection = await asyncpg.connect(pg_url)
    try:
        turn = connection.transaction()
        await turn.start()
        await connection.execute("LOCK TABLE runs.run_events IN EXCLUSIVE MODE")
        async with two[0].visitor() as one, two[1].visitor() as other:
            first = asyncio.create_task(one.post("/v1/runs", json=ORDER, headers=KEY))
            second = asyncio.create_task(other.post("/v1/runs", json=ORDER, headers=KEY))
            await _blocked(connection, 2)
            assert await rows(pg_url, "run_keys") == 0, "a key is seen with its Run or not at all"
            await turn.rollback()
            answers = [await first, await second]
    finally:
        await connection.close()
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 1


async def test_a_kill_between_key_and_run_leaves_neither(two: list[Replica], pg_url: str) -> None:
    """IDEM-1: whoever dies after it wrote the key and before it wrote the Run has written nothing; the key is free."""
    connection = await asyncpg.connect(pg_url)
    try:
        turn = connection.transaction()
        await turn.start()
        await connection.execute("LOCK TABLE runs.runs IN EXCLUSIVE MODE")
        async with two[0].visitor() as client:
            dying = asyncio.create_task(client.post("/v1/runs", json=ORDER, headers=KEY))
            (victim,) = await _blocked(connection, 1)
            await connection.execute("SELECT pg_terminate_backend($1)", victim)
            check(await dying, 503, "governance_backend_down")
            await turn.rollback()
            assert (await rows(pg_url, "runs"), await rows(pg_url, "run_keys")) == (0, 0)
            again = await client.post("/v1/runs", json=ORDER, headers=KEY)
    finally:
        await connection.close()
    assert (again.status_code, "idempotency-replayed" in again.headers) == (202, False)


async def _blocked(connection: asyncpg.Connection, count: int) -> list[int]:
    """The sessions of runs that wait for a lock, as soon as there are so many."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        " AND application_name = 'pointsman-runs'"
    )
    async with asyncio.timeout(20):
        while len(found := await connection.fetch(query)) < count:
            await connection.execute("SELECT pg_stat_clear_snapshot()")
            await asyncio.sleep(0.01)
    return [row["pid"] for row in found]


async def test_a_run_ends_by_its_key_before_its_id_is_known(two: list[Replica]) -> None:
    """IDEM-3: a cancel by key waits for the creation under way, here and at another replica, and ends its Run."""
    routing = two[0].routing
    routing.open.clear()
    async with two[0].visitor() as one, two[1].visitor() as other:
        creating = asyncio.create_task(one.post("/v1/runs", json=ORDER, headers=KEY))
        await eventually(lambda: routing.validated == 1)
        ends = [
            asyncio.create_task(client.post("/v1/runs:cancelByKey", json={"idempotency_key": "order-17"}))
            for client in (one, other)
        ]
        routing.open.set()
        made = (await creating).json()
        for answer in await asyncio.gather(*ends):
            assert (answer.status_code, answer.json()["id"]) == (202, made["id"])
        joined = await other.get(f"/v1/runs/{made['id']}/join", params={"timeout_s": 30})
    assert joined.json()["status"] == "cancelled"


async def test_another_replicas_commit_that_does_not_come(two: list[Replica], pg_url: str) -> None:
    """IDEM-1: a key whose writer neither commits nor gives up within the bound of a lock is idempotency_in_progress."""
    database = Database(pg_url, schema="runs", bounds=Bounds(lock_timeout_s=0.05))
    connection = await asyncpg.connect(pg_url)
    try:
        turn = connection.transaction()
        await turn.start()
        await connection.execute("INSERT INTO runs.run_keys VALUES ('default', 'k', 'r0', 'f')")
        with pytest.raises(Fault) as caught:
            await add(PostgresRuns(database, CountedIds()), new_run("r1", "default"), "k")
        await turn.rollback()
    finally:
        await connection.close()
        await database.close()
    assert (caught.value.code, caught.value.retry_after_ms) == ("idempotency_in_progress", 1000)

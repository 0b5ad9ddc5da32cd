"""The orders in which renewals, releases and the taking of a slot can meet; looks at a busy minute."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import text

from libs.store.database import Database
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.store import statements as sql
from services.capacity.store.windows import FEW
from tests.contract.capacity.conftest import Bench, bench, emptied
from tests.support.waiting import eventually_async

VIEW = HealthLimit(1, 1, None)
TTL = timedelta(seconds=30)
SUPPLY = Subject(Kind.SUPPLY, "a/x")
# Whoever asks for the time has it at once and, while somebody holds lock 7, is kept from going on with it.
SLOW_TIME = """
CREATE OR REPLACE FUNCTION server_time() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE seen timestamptz := (SELECT now FROM test_time);
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7);
  RETURN seen;
END $$
"""


def request(lease_id: str, holder: str) -> Request:
    """A reservation of the one slot."""
    return Request(lease_id, holder, "video", "a", "a/x", VIEW, VIEW, 0, TTL)


@pytest.fixture
async def ground(pg_url: str) -> AsyncIterator[Bench]:
    """A store on a steered clock, with one slot, taken by "old"."""
    made = await bench(await emptied(pg_url))
    await made.store.apply_levels(1, [Level(Subject(Kind.CHANNEL, "a")), Level(SUPPLY, "a", concurrency=1)])
    assert isinstance(await made.store.reserve(request("1", "old")), Lease)
    yield made
    await made.store.close()


@pytest.fixture
async def other(pg_url: str) -> AsyncIterator[Database]:
    """Another process' connections."""
    database = Database(pg_url, schema="capacity")
    yield database
    await database.close()


async def test_a_renewal_in_flight_keeps_its_slot(ground: Bench, other: Database) -> None:
    """CAP-2: a lease renewed before its end, and committed after it, was never given away in between."""
    renew = text(sql.RENEW)
    async with other.unit() as tx:
        renewed = await tx.execute(renew, {"ids": ["1"], "holder": "old", "ttl": timedelta(seconds=60)})
        assert list(renewed.scalars()) == ["1"]
        await ground.advance(30)
        assert await ground.store.reserve(request("2", "new")) == Refusal(SUPPLY, Gate.CONCURRENCY, 1, 1)
        assert await ground.store.sweep() == frozenset()
    assert [lease.id for lease in await ground.store.leases()] == ["1"]


async def test_a_slot_being_taken_over_is_lost_to_its_old_holder(ground: Bench, other: Database) -> None:
    """CAP-2: a renewal that waits for a takeover finds its lease ended, and the slot has one holder."""
    await ground.advance(30)
    async with other.unit() as tx:
        await tx.execute(text(sql.SWEEP))
        renewal = asyncio.create_task(ground.store.renew("old", ("1",), TTL))
        release = asyncio.ensure_future(ground.store.release("1", "old", None))
        await asyncio.sleep(0)
    assert (await renewal).lost == ("1",)
    assert await release is None
    assert isinstance(await ground.store.reserve(request("2", "new")), Lease)


async def test_a_slot_is_taken_after_it_was_given_back(ground: Bench, other: Database) -> None:
    """CAP-1: a reservation that began before the release it waited for is timed after it: no two held at one moment."""
    async with other.unit() as tx:
        await tx.execute(text(SLOW_TIME))
    async with other.unit() as tx:
        await tx.execute(text("SELECT pg_advisory_xact_lock(7)"))
        reservation = asyncio.ensure_future(ground.store.reserve(request("2", "new")))

        async def waits() -> bool:
            return bool(await tx.scalar(text("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND objid = 7)")))

        await eventually_async(waits)
        await tx.execute(text("UPDATE test_time SET now = now + interval '1 second'"))
        given_back = "UPDATE lease SET ended_at = server_time(), released = true WHERE id = '1' RETURNING ended_at"
        ended_at = await tx.scalar(text(given_back))
    taken = await reservation
    assert isinstance(taken, Lease)
    assert taken.reserved_at >= ended_at
    assert taken.expires_at == taken.reserved_at + TTL


async def test_live_leases_are_counted_at_each_look_however_busy_the_minute(ground: Bench, other: Database) -> None:
    """CAP-2, PRF-3: of a minute with thousands of leases the windows may be of a moment ago, the slots never."""
    async with other.unit() as tx:
        await tx.execute(
            text(
                "INSERT INTO lease SELECT 'n' || n, 'h', 'video', 'a', 'a/x', 1, 1, 0, server_time(),"
                " server_time() + interval '1 hour', server_time(), true, 0 FROM generate_series(1, :count) AS n"
            ),
            {"count": FEW},
        )

    async def seen() -> tuple[int, int]:
        (usage,) = [item.usage for item in await ground.store.figures() if item.level.subject == SUPPLY]
        return usage.in_use, usage.requests

    assert await seen() == (1, FEW + 1)
    await ground.store.release("1", "old", None)
    assert await seen() == (0, FEW + 1)
    await ground.advance(61)

    async def over() -> bool:
        return await seen() == (0, 0)

    await eventually_async(over)

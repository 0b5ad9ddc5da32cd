"""Many reservers, several pools, one real database: never one lease too many."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import select

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.migrations import migrate
from services.capacity.compose import VERSIONS
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.store.postgres import PostgresCapacityStore
from services.capacity.store.tables import lease as leases

POOLS = 3
WORKERS = 8
ROUNDS = 25
SLOTS = {"a": 6, "a/x": 3, "a/y": 4, "b": 20, "b/z": 2}
KIND_SLOTS = 7
VIEW = HealthLimit(1, 1, None)
SHORT = timedelta(milliseconds=40)
LONG = timedelta(seconds=30)


async def pools(url: str) -> list[PostgresCapacityStore]:
    """Several processes' worth of stores."""
    await migrate(url, schema="capacity", versions=VERSIONS)
    bounds = Bounds(pool_size=WORKERS, max_overflow=0, pool_timeout_s=30)
    stores = [PostgresCapacityStore(Database(url, schema="capacity", bounds=bounds)) for _ in range(POOLS)]
    levels = [Level(Subject(Kind.GLOBAL, "video"), concurrency=KIND_SLOTS)]
    for name, slots in SLOTS.items():
        kind = Kind.SUPPLY if "/" in name else Kind.CHANNEL
        levels.append(Level(Subject(kind, name), name[0] if "/" in name else "", concurrency=slots))
    await stores[0].apply_levels(1, levels)
    return stores


async def compete(store: PostgresCapacityStore, name: str, seed: int, outcomes: Counter[str]) -> None:
    """Reserve, hold, then release, renew, or die."""
    rng = random.Random(seed)
    for number in count():
        if number == ROUNDS:
            return
        supply = rng.choice(["a/x", "a/y", "b/z"])
        ttl = rng.choice([SHORT, LONG])
        request = Request(f"{name}-{number}", name, "video", supply[0], supply, VIEW, VIEW, 0, ttl)
        outcome = await store.reserve(request)
        if isinstance(outcome, Refusal):
            outcomes["refused"] += 1
            continue
        outcomes["admitted"] += 1
        if ttl is SHORT and rng.random() < 0.5:
            renewal = await store.renew(name, (outcome.id,), SHORT)
            outcomes["renewed" if renewal.renewed else "lost"] += 1
        elif rng.random() < 0.9:
            released = await store.release(outcome.id, name, None)
            outcomes["released" if released else "lapsed"] += 1


async def held(url: str) -> list[Lease]:
    """Every lease that there ever was."""
    database = Database(url, schema="capacity")
    async with database.read() as tx:
        rows = (await tx.execute(select(leases))).mappings().all()
    await database.close()
    return [Lease(**row) for row in rows]


def most_at_once(found: list[Lease]) -> int:
    """The greatest number of leases that held at one moment: a sweep over their beginnings and ends."""
    moments = [(lease.reserved_at, 1) for lease in found]
    moments += [(lease.ended_at or lease.expires_at, -1) for lease in found]
    most = now = 0
    for _, change in sorted(moments):  # at one moment ends come before beginnings: a slot may be taken over
        now += change
        most = max(most, now)
    return most


async def test_nobody_is_admitted_beyond_any_limit(pg_url: str) -> None:
    """CAP-1, CAP-2: with competing pools, lapsing and renewed leases, no level ever holds more than its slots."""
    stores = await pools(pg_url)
    outcomes: Counter[str] = Counter()
    await asyncio.gather(
        *[
            compete(store, f"{pool}-{worker}", pool * 100 + worker, outcomes)
            for pool, store in enumerate(stores)
            for worker in range(WORKERS)
        ]
    )
    found = await held(pg_url)
    for store in stores:
        await store.close()
    assert len(found) == outcomes["admitted"]
    assert outcomes["refused"]
    assert outcomes["released"]
    for name, slots in SLOTS.items():
        mine = [lease for lease in found if name in (lease.channel_id, lease.supply_id)]
        assert most_at_once(mine) <= slots, name
    assert most_at_once(found) <= KIND_SLOTS


async def test_one_slot_has_one_winner(pg_url: str) -> None:
    """CAP-1: of many reservations at the same moment for one slot, exactly one is admitted, from whatever pool."""
    stores = await pools(pg_url)
    await stores[1].hear({Subject(Kind.SUPPLY, "b/z"): HealthLimit(2, 2, 1)})
    probing = HealthLimit(2, 2, 1)
    asked = [
        stores[number % POOLS].reserve(Request(f"probe-{number}", "h", "video", "b", "b/z", VIEW, probing, 0, LONG))
        for number in range(24)
    ]
    outcomes = await asyncio.gather(*asked)
    for store in stores:
        await store.close()
    assert sum(isinstance(outcome, Lease) for outcome in outcomes) == 1


async def test_a_store_that_is_away_admits_nobody() -> None:
    """CAP-12: a backend that does not answer is a fault with the time of a retry, never an admission."""
    store = PostgresCapacityStore(Database("postgresql://nobody@/none?host=/nowhere", schema="capacity"))
    request = Request("1", "h", "video", "a", "a/x", VIEW, VIEW, 0, LONG)
    with pytest.raises(Fault) as raised:
        await store.reserve(request)
    await store.close()
    assert (raised.value.code, raised.value.retry_after_ms) == ("governance_backend_down", 5000)

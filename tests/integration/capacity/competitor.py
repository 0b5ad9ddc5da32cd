"""One process of a competition: reserves, holds, gives back or renews, and writes a line for each thing it was told.

python -m tests.integration.capacity.competitor NUMBER ROUNDS POSTGRES_URL [VALKEY_URL]
"""

import asyncio
import json
import random
import sys
from collections.abc import Sequence
from datetime import timedelta

from libs.store.database import Database
from libs.store.migrations import migrate
from services.capacity.compose import VERSIONS
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.levels import HealthLimit, Level
from services.capacity.ports import CapacityStore
from services.capacity.store.postgres import PostgresCapacityStore
from services.capacity.store.valkey import ValkeyCapacityStore, connect

CALLERS = 4
VIEW = HealthLimit(1, 1, None)
TTL = timedelta(seconds=30)
LONGEST_TTL = timedelta(seconds=60)


def opened(postgres_url: str, valkey_url: str = "") -> CapacityStore:
    """The store of one process."""
    store: CapacityStore = PostgresCapacityStore(Database(postgres_url, schema="capacity"))
    if valkey_url:
        return ValkeyCapacityStore(connect(valkey_url, 10.0), store, LONGEST_TTL)
    return store


async def prepared(levels: Sequence[Level], postgres_url: str, valkey_url: str = "") -> CapacityStore:
    """The store, with tables and levels."""
    await migrate(postgres_url, schema="capacity", versions=VERSIONS)
    store = opened(postgres_url, valkey_url)
    await store.apply_levels(await store.catalog_revision() + 1, levels)
    return store


async def caller(store: CapacityStore, name: str, rounds: int, seed: int) -> None:
    """One after the other."""
    rng = random.Random(seed)
    for number in range(rounds // CALLERS):
        supply = rng.choice(["a/x", "a/y", "b/z"])
        request = Request(f"{name}-{number}", name, "video", supply[0], supply, VIEW, VIEW, 0, TTL)
        outcome = await store.reserve(request)
        told = {"channel": supply[0], "supply": supply, "at": "", "until": ""}
        if isinstance(outcome, Lease):
            if rng.random() < 0.3:
                await store.renew(name, (outcome.id,), TTL)
            back = await store.release(outcome.id, name, None)
            assert back is not None, "a lease that is held is given back"
            assert back.ended_at is not None, "what was given back has an end"
            told |= {"at": outcome.reserved_at.isoformat(), "until": back.ended_at.isoformat()}
        sys.stdout.write(json.dumps(told) + "\n")


async def main(number: int, rounds: int, *where: str) -> None:
    """Some callers at once."""
    store = opened(*where)
    callers = [caller(store, f"{number}-{index}", rounds, number * 100 + index) for index in range(CALLERS)]
    await asyncio.gather(*callers)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))

"""Both stores of the edge keep the same contract."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.upgrading import differences
from services.edge.compose import SCHEMA, VERSIONS
from services.edge.domain.keys import Kept, Key, Scope
from services.edge.ports import Keys, Owners, RequestCounts
from services.edge.store.memory import MemoryCounts, MemoryKeys, MemoryOwners
from services.edge.store.postgres import PostgresCounts, PostgresKeys, PostgresOwners
from services.edge.store.tables import metadata
from tests.support.worlds import START


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return "memory:" if request.param == "memory" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
async def stores(store_url: str) -> AsyncIterator[tuple[Keys, Owners]]:
    """Empty stores."""
    if store_url == "memory:":
        yield MemoryKeys(), MemoryOwners()
        return
    await migrate(store_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(store_url, schema=SCHEMA)
    try:
        yield PostgresKeys(database), PostgresOwners(database)
    finally:
        await database.close()


def key(key_id: str, tenant: str = "studio") -> Key:
    """A key that ends some day."""
    return Key(key_id, tenant, frozenset({Scope.RUNS, Scope.OPERATE}), START, START + timedelta(days=1))


async def test_a_key_comes_back_as_it_was(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: a key is found by its id with its digest, and by nothing else."""
    keys, _ = stores
    await keys.add(key("k1"), "d1")
    assert await keys.find("k1") == Kept(key("k1"), "d1")
    assert await keys.find("k2") is None


async def test_keys_are_paged_newest_first(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: the keys of one tenant, or of all, page by page."""
    keys, _ = stores
    for number in range(4):
        await keys.add(key(f"k{number}", "studio" if number % 2 else "other"), "d")
    assert [found.id for found in await keys.page("", "", 3)] == ["k3", "k2", "k1"]
    assert [found.id for found in await keys.page("", "k1", 3)] == ["k0"]
    assert [found.id for found in await keys.page("studio", "", 9)] == ["k3", "k1"]


async def test_a_key_ends_once(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: the first revocation counts; it is seen by the next look-up."""
    keys, _ = stores
    await keys.add(key("k1"), "d1")
    ended = replace(key("k1"), revoked_at=START)
    assert await keys.revoke("k1", START) == ended
    assert await keys.revoke("k1", START + timedelta(hours=1)) == ended
    assert await keys.find("k1") == Kept(ended, "d1")
    assert await keys.revoke("none", START) is None


async def test_owners_are_told_apart(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: what one tenant may read another may not; saying it twice is harmless."""
    _, owners = stores
    for _ in range(2):
        await owners.add("a", ["d1", "d2"], START)
    await owners.add("b", ["d2"], START)
    await owners.add("b", [], START)
    told = [await owners.owns(tenant, digest) for tenant in "ab" for digest in ("d1", "d2", "d3")]
    assert told == [True, True, False, False, True, False]
    await owners.ping()


async def test_very_many_artifacts_are_owned_at_once(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: one page of productions shows more artifacts than a statement has parameters."""
    _, owners = stores
    await owners.add("a", [f"d{number}" for number in range(12_000)], START)
    assert await owners.owns("a", "d11999")


async def test_migrations_say_what_the_tables_are(pg_url: str) -> None:
    """OPS-7: the migrated schema and the declared tables are the same."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    assert await differences(pg_url, schema=SCHEMA, metadata=metadata) == []


async def test_a_rotated_key_keeps_one_former_secret(stores: tuple[Keys, Owners]) -> None:
    """AUTH-1: rotation replaces the digest and keeps the one before it alone; a key that has ended is not rotated."""
    keys, _ = stores
    await keys.add(key("k1"), "d1")
    until = START + timedelta(hours=1)
    rotated = await keys.rotate("k1", "d2", START, until)
    assert rotated == replace(key("k1"), former_until=until)
    assert await keys.find("k1") == Kept(rotated, "d2", "d1")
    again = await keys.rotate("k1", "d3", START, START)
    assert again is not None
    assert await keys.find("k1") == Kept(again, "d3", "d2")
    assert await keys.rotate("k1", "d4", START + timedelta(days=1), until) is None
    await keys.revoke("k1", START)
    assert await keys.rotate("k1", "d4", START, until) is None
    assert await keys.rotate("none", "d4", START, until) is None
    kept = await keys.find("k1")
    assert kept is not None
    assert kept.digest == "d3"


@pytest.fixture
async def counts(store_url: str) -> AsyncIterator[RequestCounts]:
    """No counts."""
    if store_url == "memory:":
        yield MemoryCounts()
        return
    await migrate(store_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(store_url, schema=SCHEMA)
    try:
        yield PostgresCounts(database)
    finally:
        await database.close()


async def test_replicas_learn_what_others_let_in(counts: RequestCounts) -> None:
    """AUTH-2: a replica's counts replace its own, others are summed by tenant and minute, and its own are left out."""
    assert await counts.exchange("r1", 100, {"a": 3, "b": 1}) == {}
    assert await counts.exchange("r2", 100, {"a": 4}) == {"a": 3, "b": 1}
    assert await counts.exchange("r1", 100, {"a": 5, "b": 1}) == {"a": 4}
    assert await counts.exchange("r3", 100, {}) == {"a": 9, "b": 1}
    assert await counts.exchange("r2", 101, {"a": 1}) == {}
    assert await counts.exchange("r1", 200, {}) == {}
    assert await counts.exchange("r9", 100, {}) in ({}, {"a": 9, "b": 1}), "old minutes may be gone"


async def test_very_many_tenants_are_counted_at_once(counts: RequestCounts) -> None:
    """AUTH-2: one replica serves more tenants in a minute than a statement has parameters."""
    told = {f"t{number}": number + 1 for number in range(9_000)}
    await counts.exchange("r1", 100, told)
    assert await counts.exchange("r2", 100, {}) == told

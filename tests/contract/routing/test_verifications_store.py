"""Every store of verifications keeps the same contract."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.migrations import migrate
from services.routing.domain.verification import Trial, Verification, VerificationState
from services.routing.ports.verification import VerificationStore
from services.routing.store.verifications_memory import MemoryVerifications
from services.routing.store.verifications_postgres import PostgresVerifications
from tests.contract.routing.test_catalog_store import VERSIONS

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
TRIAL = Trial("words", "v-1", {"prompt": "ü", "n": [1, 2.5]}, {"duration_s": {"min": 3.4}})
PASSED = replace(TRIAL, state=VerificationState.PASSED, cost=Money("CNY", Decimal("4.25")))
FAILED = replace(TRIAL, state=VerificationState.FAILED, reasons=("lasts 1 s",))
BEGUN = Verification("v", "a/clip", "clip-1", 3, NOW, trials=(TRIAL,))


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return "memory:" if request.param == "memory" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[VerificationStore]:
    """An empty store."""
    if store_url == "memory:":
        yield MemoryVerifications()
        return
    await migrate(store_url, schema="routing", versions=VERSIONS)
    database = Database(store_url, schema="routing")
    try:
        yield PostgresVerifications(database)
    finally:
        await database.close()


async def test_an_id_is_one_verification(store: VerificationStore) -> None:
    """CAT-7: what was kept first under an id stands, whole."""
    assert await store.get("v") is None
    assert await store.add(BEGUN) == BEGUN
    assert await store.add(replace(BEGUN, supply="b/clip")) == BEGUN
    assert await store.get("v") == BEGUN
    assert await store.newest() == {}


async def test_an_end_stands(store: VerificationStore) -> None:
    """CAT-7: a verdict is given once, with what its requests have cost."""
    await store.add(BEGUN)
    assert (await store.settle(BEGUN)).state is VerificationState.RUNNING
    passed = BEGUN.settled((PASSED,), NOW)
    assert await store.settle(passed) == passed
    assert await store.settle(BEGUN.settled((FAILED,), NOW)) == passed
    assert await store.get("v") == passed
    assert await store.newest() == {"a/clip": passed}


async def test_the_newest_end_of_each_supply_counts(store: VerificationStore) -> None:
    """CAT-7: evidence is the verdict that came last; what still runs says nothing."""
    later = NOW + timedelta(seconds=1)
    for name, supply, trial, now in (
        ("1", "a/clip", PASSED, later), ("2", "a/clip", FAILED, NOW), ("3", "b/clip", FAILED, NOW),
    ):  # fmt: skip
        begun = await store.add(replace(BEGUN, id=name, supply=supply))
        await store.settle(begun.settled((trial,), now))
    await store.add(replace(BEGUN, id="4", supply="c/clip"))
    newest = await store.newest()
    assert {supply: item.id for supply, item in newest.items()} == {"a/clip": "1", "b/clip": "3"}

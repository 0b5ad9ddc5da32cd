"""The stores that keep one contract."""

from collections.abc import AsyncIterator

import pytest

from libs.store.database import Database
from libs.store.migrations import migrate
from services.runs.compose import SCHEMA, VERSIONS
from services.runs.ports import Runs
from services.runs.store.memory import MemoryRuns
from services.runs.store.postgres import PostgresRuns
from tests.support.worlds import CountedIds


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return "memory:" if request.param == "memory" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
async def runs(store_url: str) -> AsyncIterator[Runs]:
    """An empty store."""
    if store_url == "memory:":
        yield MemoryRuns(CountedIds())
        return
    await migrate(store_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(store_url, schema=SCHEMA)
    try:
        yield PostgresRuns(database, CountedIds())
    finally:
        await database.close()

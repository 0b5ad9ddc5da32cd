"""A migrated toy context for the store's contract."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.store.database import Database
from libs.store.engine import Bounds
from libs.store.migrations import migrate

VERSIONS = Path(__file__).parent / "toy" / "versions"
TIGHT = Bounds(pool_size=2, max_overflow=0, pool_timeout_s=0.2, lock_timeout_s=0.2, statement_timeout_s=0.5)


@pytest.fixture
async def database(pg_empty_url: str) -> AsyncIterator[Database]:
    """The toy's database, migrated, with tight bounds so that hitting one is quick."""
    await migrate(pg_empty_url, schema="toy", versions=VERSIONS)
    database = Database(pg_empty_url, schema="toy", bounds=TIGHT)
    yield database
    await database.close()

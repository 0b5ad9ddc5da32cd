"""How schemas come up to date."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.upgrading import differences
from tests.contract.store.conftest import VERSIONS
from tests.contract.store.toy.tables import metadata


async def revision(url: str, schema: str) -> list[str]:
    database = Database(url, schema=schema)
    async with database.read() as tx:
        found = (await tx.execute(text("SELECT version_num FROM alembic_version"))).scalars().all()
    await database.close()
    return list(found)


async def test_an_empty_database_comes_up_to_date(pg_empty_url: str) -> None:
    """OPS-7: all versions are applied in order, a second time nothing is, and the tables are as declared."""
    assert await migrate(pg_empty_url, schema="toy", versions=VERSIONS) == ("0001", "0002")
    assert await migrate(pg_empty_url, schema="toy", versions=VERSIONS) == ()
    assert await differences(pg_empty_url, schema="toy", metadata=metadata) == []


async def test_differences_are_noticed(pg_empty_url: str, tmp_path: Path) -> None:
    """A table that was declared and not migrated shows up."""
    first = tmp_path / "versions"
    first.mkdir()
    (first / "0001_initial.py").write_text((VERSIONS / "0001_initial.py").read_text())
    await migrate(pg_empty_url, schema="toy", versions=first)
    assert await differences(pg_empty_url, schema="toy", metadata=metadata) != []


def test_many_replicas_may_start_at_once(pg_empty_url: str) -> None:
    """OPS-2: of several replicas that migrate at the same time, each on a loop of its own, one works and all go on."""

    def replica(_: int) -> tuple[str, ...]:
        return asyncio.run(migrate(pg_empty_url, schema="toy", versions=VERSIONS))

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(replica, range(5))) == [(), (), (), (), ("0001", "0002")]


async def test_contexts_may_migrate_at_once(pg_empty_url: str) -> None:
    """The contexts of one process do not fall into each other's schema when they migrate at the same time."""
    done = await asyncio.gather(*[migrate(pg_empty_url, schema=f"ctx{n}", versions=VERSIONS) for n in range(4)])
    assert done == [("0001", "0002")] * 4
    for n in range(4):
        assert await differences(pg_empty_url, schema=f"ctx{n}", metadata=metadata) == []


async def test_contexts_do_not_see_each_other(pg_empty_url: str) -> None:
    """Each context has its own schema and its own version table; equal names do not clash."""
    await migrate(pg_empty_url, schema="one", versions=VERSIONS)
    await migrate(pg_empty_url, schema="two", versions=VERSIONS)
    assert await revision(pg_empty_url, "one") == await revision(pg_empty_url, "two") == ["0002"]
    database = Database(pg_empty_url, schema="public")
    async with database.read() as tx:
        assert (await tx.execute(text("SELECT to_regclass('notes')"))).scalar_one() is None
    await database.close()


async def test_the_previous_release_runs_on_the_new_schema(pg_empty_url: str, tmp_path: Path) -> None:
    """OPS-7: a process that does not know the newest revision leaves the schema as it is and starts."""
    await migrate(pg_empty_url, schema="toy", versions=VERSIONS)
    old = tmp_path / "versions"
    old.mkdir()
    (old / "0001_initial.py").write_text((VERSIONS / "0001_initial.py").read_text())
    assert await migrate(pg_empty_url, schema="toy", versions=old) == ()
    assert await revision(pg_empty_url, "toy") == ["0002"]


async def test_a_failed_migration_changes_nothing(pg_empty_url: str, tmp_path: Path) -> None:
    """All or nothing: the versions before the broken one are undone as well, and the error says what was wrong."""
    broken = tmp_path / "versions"
    broken.mkdir()
    (broken / "0001_initial.py").write_text((VERSIONS / "0001_initial.py").read_text())
    (broken / "0002_broken.py").write_text(
        "from alembic import op\nrevision = '0002'\ndown_revision = '0001'\n"
        "def upgrade():\n    op.execute('ALTER TABLE nowhere ADD COLUMN x text')\n"
    )
    with pytest.raises(DBAPIError, match="nowhere"):
        await migrate(pg_empty_url, schema="toy", versions=broken)
    assert await migrate(pg_empty_url, schema="toy", versions=VERSIONS) == ("0001", "0002")


@pytest.mark.parametrize("text_", ["revision = '0002'\n", "revision: str = '0002'\ndown_revision: str = '0001'\n", ""])
async def test_a_file_that_does_not_name_itself_is_refused(pg_empty_url: str, tmp_path: Path, text_: str) -> None:
    """OPS-7: what a schema should be at is read without Alembic; a file that cannot be read so is never passed over."""
    for file in VERSIONS.glob("0*.py"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "0003_odd.py").write_text(text_)
    with pytest.raises(ValueError, match=r"0003_odd\.py must say revision"):
        await migrate(pg_empty_url, schema="toy", versions=tmp_path)


async def test_an_absent_database_is_a_fault() -> None:
    """Starting without a database says so in our own words."""
    with pytest.raises(Fault) as caught:
        await migrate("postgresql://u@/db?host=/nonexistent", schema="toy", versions=VERSIONS)
    assert caught.value.code == "governance_backend_down"

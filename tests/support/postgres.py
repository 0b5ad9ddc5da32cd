"""One real PostgreSQL for a test session, and a fresh database for every test that asks for one.

    async def test_something(pg_url): ...           # a database of its own, gone at the end of the test
    async with fresh_database(server) as url: ...   # the same, outside fixtures

A fresh database has no rows, and the schemas of all contexts as their migrations make them: these run once for a
server, and `migrate` finds nothing to do. Who is to see them run asks for `pg_empty_url`.

The server starts with the first test that needs it (about half a second), one per worker under pytest-xdist, lives in
a temporary directory and dies with the process, also when that is killed. Fixtures take no part in event loops.
"""

import asyncio
import atexit
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import pytest

from libs.host.embedded_postgres import EmbeddedPostgres
from libs.store.migrations import migrate

# A lost test database costs nothing, so nothing waits for the disk.
SETTINGS = {"synchronous_commit": "off", "max_connections": "400", "shared_buffers": "32MB", "autovacuum": "off"}

SERVICES = Path(__file__).parents[2] / "services"
HOUSE = "house"  # what fresh databases are copies of

_numbers = itertools.count(1)
_furnished: set[str] = set()


@contextmanager
def passable_folder() -> Iterator[Path]:
    """A temporary directory that others may pass: `nobody` must, where root has to fall back to it."""
    with tempfile.TemporaryDirectory(prefix="pointsman-test-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@asynccontextmanager
async def embedded_server() -> AsyncIterator[EmbeddedPostgres]:
    """A server in a temporary directory."""
    with passable_folder() as folder:
        async with EmbeddedPostgres(folder / "pg", settings=SETTINGS, durable=False) as server:
            yield server


async def create_database(server: EmbeddedPostgres, template: str = "template0") -> str:
    """Make a new database as a copy of `template` (a database name nobody is connected to); its URL."""
    name = f"test_{next(_numbers)}"
    connection = await asyncpg.connect(server.url, timeout=10)
    try:
        await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy', timeout=60)
    finally:
        await connection.close()
    return server.url_of(name)


async def migrate_all(url: str) -> None:
    """Bring the schemas of all contexts up to date."""
    for versions in sorted(SERVICES.glob("*/store/migrations/versions")):
        await migrate(url, schema=versions.parents[2].name, versions=versions)


async def prepared_database(server: EmbeddedPostgres) -> str:
    """A new database without rows, with the schemas of all contexts; its URL."""
    if server.url not in _furnished:
        first = await create_database(server)
        await migrate_all(first)
        name = first.split("@/", 1)[1].split("?", 1)[0]
        connection = await asyncpg.connect(server.url, timeout=10)
        try:
            await connection.execute(f'ALTER DATABASE "{name}" RENAME TO "{HOUSE}"')
        finally:
            await connection.close()
        _furnished.add(server.url)
    return await create_database(server, HOUSE)


async def drop_database(server: EmbeddedPostgres, url: str) -> None:
    """Drop a database made by `create_database`, and whoever is still connected to it."""
    name = url.split("@/", 1)[1].split("?", 1)[0]
    connection = await asyncpg.connect(server.url, timeout=10)
    try:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', timeout=60)
    finally:
        await connection.close()


@asynccontextmanager
async def fresh_database(server: EmbeddedPostgres) -> AsyncIterator[str]:
    """A prepared database for the time of the block; its URL."""
    url = await prepared_database(server)
    try:
        yield url
    finally:
        await drop_database(server, url)


@pytest.fixture(scope="session")
def pg_server() -> Iterator[EmbeddedPostgres]:
    """The server of this session (of this worker)."""
    with asyncio.Runner() as runner:
        context = embedded_server()
        server = runner.run(context.__aenter__())
        try:
            yield server
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def pg_url(pg_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a prepared database that this test alone uses."""
    url = asyncio.run(prepared_database(pg_server))
    yield url
    asyncio.run(drop_database(pg_server, url))


@pytest.fixture
def pg_empty_url(pg_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a database without any schema that this test alone uses."""
    url = asyncio.run(create_database(pg_server))
    yield url
    asyncio.run(drop_database(pg_server, url))


@pytest.fixture(scope="module")
def pg_module_url(pg_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a prepared database that the tests of one module share; they keep their rows apart by their ids."""
    url = asyncio.run(prepared_database(pg_server))
    yield url
    asyncio.run(drop_database(pg_server, url))


_homes: list[Path] = []


async def copy_prepared_cluster(home: Path) -> None:
    """Put into the home of a server that was never started a cluster whose default database is prepared."""
    if not _homes:
        kept = Path(tempfile.mkdtemp(prefix="pointsman-cluster-"))
        atexit.register(shutil.rmtree, kept, ignore_errors=True)
        kept.chmod(0o755)
        async with EmbeddedPostgres(kept / "pg", settings=SETTINGS, durable=False) as server:
            await migrate_all(server.url)
        _homes.append(kept / "pg")
    shutil.copytree(_homes[0] / "data", home / "data")

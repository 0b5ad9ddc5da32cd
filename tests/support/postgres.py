"""One real PostgreSQL for a test session, and a fresh database for every test that asks for one.

    async def test_something(pg_url): ...           # an empty database of its own, gone at the end of the session
    async with fresh_database(server) as url: ...   # the same, outside fixtures

The server starts with the first test that needs it (about half a second), one per worker under pytest-xdist, lives in
a temporary directory and dies with the process, also when that is killed. Fixtures take no part in event loops.
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import pytest

from libs.host.embedded_postgres import EmbeddedPostgres

# A lost test database costs nothing, so nothing waits for the disk.
SETTINGS = {"synchronous_commit": "off", "max_connections": "400", "shared_buffers": "32MB", "autovacuum": "off"}

_numbers = itertools.count(1)


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
    """An empty database for the time of the block; its URL."""
    url = await create_database(server)
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
    """The URL of an empty database that this test alone uses."""
    url = asyncio.run(create_database(pg_server))
    yield url
    asyncio.run(drop_database(pg_server, url))


@pytest.fixture(scope="module")
def pg_module_url(pg_server: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a database that the tests of one module share; they keep their rows apart by ids of their own."""
    url = asyncio.run(create_database(pg_server))
    yield url
    asyncio.run(drop_database(pg_server, url))

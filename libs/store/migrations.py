"""One Alembic environment for every context: its versions, its schema, its own `alembic_version` inside that schema.

How a house gets its tables. `store/tables.py` declares `metadata = MetaData()` and its `Table`s without a schema: every
session's search_path is the context's schema. `store/migrations/versions/0001_initial.py` holds `revision = "0001"`,
`down_revision = None` and `upgrade()` written by hand with `op.create_table(...)` and `op.create_index(...)`, or
`op.execute("...")` with one statement a call (the driver prepares statements, so it takes no scripts). A migration
never imports `tables.py`: it says what the tables were on that day, and `tables.py` says what they are now. The house's
contract suite calls `differences(...)`, which must be empty, so the two cannot drift apart. A migration that has been
released is never edited; the next one is `0002_<what>.py` with `down_revision = "0001"`. Every migration leaves the
previous release able to run (OPS-7): add, backfill, and only a release later remove. There is no `downgrade()`.
A house's `Context.migrate()` is `await migrate(settings.database_url, schema="routing", versions=VERSIONS)` with
`VERSIONS = Path(__file__).parent / "store" / "migrations" / "versions"`.
"""

import asyncio
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.engine import Bounds, make_engine
from libs.store.errors import DRIVER_ERRORS, translate

if TYPE_CHECKING:
    from libs.store.upgrading import Scripts

LOCK_SPACE = 0x504D  # "PM": the first half of the advisory lock's key; the second is the schema's name
DDL_LOCK_TIMEOUT = "5s"  # a migration that waits for a table lock stops every query behind it
BOUNDS = Bounds(
    pool_size=1, max_overflow=0, statement_timeout_s=0, lock_timeout_s=120, idle_in_transaction_timeout_s=600
)
REVISION = re.compile(r"""^(down_)?revision = (?:["'](\w+)["']|None)$""", re.MULTILINE)

log = logging.getLogger(__name__)
# `alembic.op` is one name for the whole process, so one migration runs at a time; a lock belongs to one event loop.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def migrate(url: str, *, schema: str, versions: Path) -> tuple[str, ...]:
    """Bring `schema` to the newest revision; the ids applied, none if it was there already.

    Any number of processes may call this at once: one works, the others wait for it. A schema that is ahead of this
    release (a newer one has run) is left alone. A failed migration changes nothing and raises what the database said;
    Fault governance_backend_down if the database is away.
    """
    engine = make_engine(url, schema=schema, bounds=BOUNDS)
    try:
        async with engine.connect() as connection:
            if await _current(connection, schema) == heads(versions):
                return ()
            # Alembic takes as long to import as all contexts take to look, and is needed once a release.
            from libs.store.upgrading import Scripts

            async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                applied = await _upgrade(connection, schema, Scripts(versions))
        if applied:
            log.info("schema %s migrated: %s", schema, ", ".join(applied))
        return applied
    except DRIVER_ERRORS as error:
        raise translate(error) from error
    finally:
        await engine.dispose()


def heads(versions: Path) -> frozenset[str]:
    """The revisions that no other one follows. ValueError for a file that does not name itself and the one before."""
    known: set[str] = set()
    followed: set[str] = set()
    for file in versions.glob("[0-9]*.py"):
        named = REVISION.findall(file.read_text(encoding="utf-8"))
        if sorted(bool(down) for down, _ in named) != [False, True]:
            raise ValueError(f'{file} must say revision = "…" and down_revision = "…" or None, each on a line')
        for down, name in named:
            (followed if down else known).add(name)
    return frozenset(known - followed)


async def _current(connection: AsyncConnection, schema: str) -> frozenset[str]:
    """The revisions that the database is at; empty if it never was migrated."""
    async with connection.begin():
        table = f'"{schema}".alembic_version'
        if (await connection.execute(text("SELECT to_regclass(:table)"), {"table": table})).scalar() is None:
            return frozenset()
        return frozenset((await connection.execute(text(f"SELECT version_num FROM {table}"))).scalars())


async def _upgrade(connection: AsyncConnection, schema: str, scripts: "Scripts") -> tuple[str, ...]:
    """Everything in one transaction, under a lock that ends with it: killed half-way, nothing has happened."""
    async with connection.begin():
        key = {"space": LOCK_SPACE, "schema": schema}
        await connection.execute(text("SELECT pg_advisory_xact_lock(:space, hashtext(:schema))"), key)
        await connection.execute(text(f"SET LOCAL lock_timeout = '{DDL_LOCK_TIMEOUT}'"))
        await connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
        return await connection.run_sync(scripts.run, schema)

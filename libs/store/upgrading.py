"""Alembic at work: its scripts run, and what it finds different. See `migrations` for how a house gets its tables."""

import logging
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, MetaData

from libs.store.engine import make_engine
from libs.store.migrations import BOUNDS

log = logging.getLogger(__name__)
logging.getLogger("alembic").setLevel(logging.WARNING)  # its ten lines a schema are said in one by `migrate`


class Scripts:
    """The migrations of one context."""

    def __init__(self, versions: Path) -> None:
        self._scripts = ScriptDirectory(versions.parent, version_locations=[versions])

    def run(self, connection: Connection, schema: str) -> tuple[str, ...]:
        """Apply what the schema lacks, in the transaction of the connection; the ids applied. A schema that is ahead
        of this release is left alone."""
        applied: list[str] = []

        def steps(revision: Any, _context: MigrationContext) -> Any:
            # What `alembic upgrade` itself calls; it has no public name.
            found = self._scripts._upgrade_revs("heads", revision)
            applied.extend(step.revision.revision for step in found)
            return found

        options = {"version_table_schema": schema, "fn": steps}
        context = MigrationContext.configure(connection, opts=options)
        unknown = [revision for revision in context.get_current_heads() if not self._knows(revision)]
        if unknown:
            log.warning("schema %s is at revision %s of a newer release; left as it is", schema, ", ".join(unknown))
            return ()
        with Operations.context(context):
            context.run_migrations()
        return tuple(applied)

    def _knows(self, revision: str) -> bool:
        try:
            return self._scripts.get_revision(revision) is not None
        except CommandError:
            return False


async def differences(url: str, *, schema: str, metadata: MetaData) -> list[Any]:
    """What Alembic finds different between the migrated schema and the declared tables; empty when they agree."""

    def compare(connection: Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": False, "version_table": "alembic_version"}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    engine = make_engine(url, schema=schema, bounds=BOUNDS)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(compare)
    finally:
        await engine.dispose()

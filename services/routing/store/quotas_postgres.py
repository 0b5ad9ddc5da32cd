"""Counts of Runs in PostgreSQL: both read the index of open Tasks alone, and no more of it than the quota's size."""

from collections.abc import Sequence

from sqlalchemy import func, select

from libs.store.database import Database
from services.routing.store.tasks_tables import tasks

AT_PROVIDERS = ("dispatching", "running")
RUN = func.coalesce(func.nullif(tasks.c.run_id, ""), tasks.c.id)


class PostgresQuotas:
    """`QuotaReader`. `_database` is set by whoever it is a part of."""

    _database: Database

    async def runs_at_providers(self, tenants: Sequence[str]) -> Sequence[tuple[str, str]]:
        """See the port."""
        found = select(tasks.c.tenant, RUN).distinct()
        found = found.where(tasks.c.tenant.in_(tenants), tasks.c.state.in_(AT_PROVIDERS))
        async with self._database.read() as tx:
            return sorted((tenant, run) for tenant, run in await tx.execute(found))

    async def waiting_runs(self, tenant: str, most: int) -> int:
        """See the port."""
        there = select(RUN).where(tasks.c.tenant == tenant, tasks.c.state.in_(AT_PROVIDERS))
        waiting = select(RUN.label("run")).distinct().where(tasks.c.tenant == tenant, tasks.c.state == "queued")
        counted = waiting.where(RUN.not_in(there)).limit(most).subquery()
        async with self._database.read() as tx:
            return int((await tx.execute(select(func.count()).select_from(counted))).scalar_one())

"""Selection rounds in PostgreSQL as a history: by the time of their decision, over all Tasks."""

from typing import Any

from sqlalchemy import Select, func, select

from libs.store.database import Database
from services.routing.domain.rounds import RoundQuery, SelectionRound
from services.routing.store.tasks_rows import round_of
from services.routing.store.tasks_tables import selections, tasks


class PostgresRounds:
    """The part of `TaskStore` that reads history. `_database` is set by whoever it is a part of."""

    _database: Database

    async def decided(self, query: RoundQuery) -> tuple[SelectionRound, ...]:
        """See the port."""
        place = (selections.c.decided_at, selections.c.task_id, selections.c.round)
        wanted = _within(query, select(selections)).order_by(*place).limit(query.count)
        if query.after is not None:
            wanted = wanted.where(func.row(*place) > func.row(*query.after))
        async with self._database.read() as tx:
            return tuple(round_of(row) for row in (await tx.execute(wanted)).mappings())

    async def count_decided(self, query: RoundQuery) -> int:
        """See the port."""
        wanted = _within(query, select(func.count()).select_from(selections))
        async with self._database.read() as tx:
            return int((await tx.execute(wanted)).scalar_one())


def _within(query: RoundQuery, wanted: Select[Any]) -> Select[Any]:
    wanted = wanted.where(selections.c.decided_at >= query.since, selections.c.decided_at < query.until)
    if query.model:
        wanted = wanted.where(selections.c.task_id == tasks.c.id, tasks.c.model == query.model)
    return wanted

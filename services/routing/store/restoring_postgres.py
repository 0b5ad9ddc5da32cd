"""Lives and restores in PostgreSQL. Each method is one transaction."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import DateTime, case, func, literal, null, select, update
from sqlalchemy.dialects.postgresql import insert

from libs.store.database import Database
from services.routing.domain.doubt import Life, Restore
from services.routing.domain.task import TERMINAL_TASKS
from services.routing.store.tasks_tables import life, restores, tasks

ENDED = tuple(sorted(state.value for state in TERMINAL_TASKS))
OPEN = tasks.c.state.not_in(ENDED)
QUEUED = tasks.c.state == "queued"
MOMENT = DateTime(timezone=True)


class PostgresRestoring:
    """`Restoring`. `_database` is set by whoever it is a part of."""

    _database: Database

    async def life(self, database: str, now: datetime) -> Life:
        """See the port."""
        first = insert(life).values(one=True, database=database, beat=0, beaten_at=now).on_conflict_do_nothing()
        async with self._database.unit() as tx:
            await tx.execute(first)
            row = (await tx.execute(select(life))).one()
        return Life(row.database, row.beat, row.beaten_at)

    async def beat(self, at_least: int, now: datetime) -> Life:
        """See the port."""
        beats = update(life).values(beat=func.greatest(life.c.beat, at_least) + 1, beaten_at=now).returning(life)
        async with self._database.unit() as tx:
            row = (await tx.execute(beats)).one()
        return Life(row.database, row.beat, row.beaten_at)

    async def pulse(self, seen: int | None = None) -> int:
        """See the port."""
        on = update(life).where(life.c.pulse == seen).values(pulse=life.c.pulse + 1).returning(life.c.pulse)
        async with self._database.unit() as tx:
            if seen is not None and (counted := (await tx.execute(on)).scalar()) is not None:
                return int(counted)
            return int((await tx.execute(select(life.c.pulse))).scalar() or 0)

    async def put_back(self, backup_at: datetime, now: datetime, before: datetime) -> int:
        """See the port. Who says the same at once waits for the first one's commit, and sends nothing before it."""
        moment, since = literal(now, MOMENT), literal(backup_at, MOMENT)
        pulse = func.coalesce(select(life.c.pulse).scalar_subquery(), 0)
        noted = insert(restores).values(backup_at=backup_at, noticed_at=now, pulse=pulse).on_conflict_do_nothing()
        open_ones = select(tasks.c.id).where(OPEN, tasks.c.created_at <= before)
        locked = open_ones.order_by(tasks.c.id).with_for_update().cte("locked")
        doubted = (
            update(tasks)
            .where(tasks.c.id.in_(select(locked.c.id)))
            .values(
                doubted_since=func.least(tasks.c.doubted_since, since),
                doubted_until=now,
                epoch=tasks.c.epoch + case((QUEUED, 1), else_=0),
                revision=tasks.c.revision + 1,
                claimed_until=case((QUEUED, null()), else_=tasks.c.claimed_until),
                parked_at=case((QUEUED, null()), else_=tasks.c.parked_at),
                next_action_at=case((QUEUED, moment), else_=tasks.c.next_action_at),
                timer_at=case((QUEUED & tasks.c.timer_at.is_not(None), moment), else_=tasks.c.timer_at),
            )
        )
        async with self._database.unit() as tx:
            if (await tx.execute(noted)).rowcount != 1:
                return 0
            return int((await tx.execute(doubted)).rowcount)

    async def restores(self) -> Sequence[Restore]:
        """See the port."""
        async with self._database.read() as tx:
            rows = await tx.execute(select(restores).order_by(restores.c.backup_at))
            return [Restore(row.backup_at, row.noticed_at, row.over_at, row.pulse) for row in rows]

    async def no_doubt(self, backup_at: datetime | None, now: datetime) -> int:
        """See the port."""
        over = update(restores).where(restores.c.over_at.is_(None)).values(over_at=now)
        if backup_at is not None:
            over = over.where(restores.c.backup_at == backup_at)
        in_doubt = select(tasks.c.id).where(OPEN, tasks.c.doubted_since.is_not(None))
        locked = in_doubt.order_by(tasks.c.id).with_for_update().cte("locked")
        freed = (
            update(tasks)
            .where(tasks.c.id.in_(select(locked.c.id)))
            .values(doubted_since=None, doubted_until=None, revision=tasks.c.revision + 1)
            .returning(tasks.c.state)
        )
        async with self._database.unit() as tx:
            await tx.execute(over)
            if (await tx.execute(select(restores.c.backup_at).where(restores.c.over_at.is_(None)))).first() is not None:
                return 0
            return sum(row.state == "queued" for row in await tx.execute(freed))

"""Late words in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update

from libs.store.database import Database
from services.routing.domain.late import asked_again
from services.routing.domain.task import TERMINAL_TASKS, Attempt, Task
from services.routing.ports.alerts import Alert
from services.routing.store.alerts_postgres import write_alerts
from services.routing.store.tasks_rows import attempt_of, attempt_row
from services.routing.store.tasks_tables import attempts, tasks

ENDED = tuple(sorted(state.value for state in TERMINAL_TASKS))


class PostgresLate:
    """`LateStore`. `_database` is set by whoever it is a part of."""

    _database: Database

    async def take_late(self, now: datetime, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        due = (
            select(attempts)
            .where(attempts.c.late_look_at <= now)
            .order_by(attempts.c.late_look_at, attempts.c.id)
            .limit(count)
            .with_for_update(skip_locked=True)
        )
        async with self._database.unit() as tx:
            taken = [asked_again(attempt_of(row), now) for row in (await tx.execute(due)).mappings()]
            for attempt in taken:
                look = {"late_look_at": attempt.late_look_at, "late_looks": attempt.late_looks}
                await tx.execute(update(attempts).where(attempts.c.id == attempt.id).values(look))
        return tuple(taken)

    async def book_late(self, task: Task, before: Attempt, after: Attempt, alerts: Sequence[Alert]) -> bool:
        """See the port. The Task's row is locked first, as every writer does."""
        spent = update(tasks).where(tasks.c.id == task.id, tasks.c.state.in_(ENDED), tasks.c.revision == task.revision)
        unspoken = (
            select(attempts.c.id)
            .where(attempts.c.id == before.id, attempts.c.late.is_(None), attempts.c.resolution == before.resolution)
            .where(attempts.c.provider_task_id == before.provider_task_id)
        )
        row = {key: value for key, value in attempt_row(after).items() if key not in ("id", "task_id", "number")}
        async with self._database.unit() as tx:
            if (await tx.execute(unspoken)).first() is None:
                return False
            booked = spent.values(spent=task.spent.amount, revision=tasks.c.revision + 1)
            if (await tx.execute(booked)).rowcount != 1:  # another word came between the look and this write
                return False
            await tx.execute(update(attempts).where(attempts.c.id == after.id).values(row))
            await write_alerts(tx, alerts)
        return True

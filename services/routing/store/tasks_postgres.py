"""Tasks in PostgreSQL.

Laws of this file:
- READ COMMITTED, small transactions, none of them open while anybody outside is asked;
- what is written all the time is `queue_postgres`; this file reads, and writes what is rare;
- rows are locked in one order: alerts, the Task, then its Attempts, then rounds.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Select, and_, any_, bindparam, case, delete, false, func, or_, select, text, true, update
from sqlalchemy import Text as SqlText
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.store.database import Database
from libs.store.lane import fetch_within
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.task import TERMINAL_TASKS, Attempt, AttemptState, Task
from services.routing.ports import TaskQuery, Write
from services.routing.ports.pausing import PAUSED
from services.routing.store import queue_statements as sql
from services.routing.store.alerts_postgres import PostgresAlerts, write_alerts
from services.routing.store.checks_postgres import PostgresChecks
from services.routing.store.late_postgres import PostgresLate
from services.routing.store.paging import key_of, token_of
from services.routing.store.queue_postgres import PostgresQueue, save_values, stored
from services.routing.store.quotas_postgres import PostgresQuotas
from services.routing.store.restoring_postgres import PostgresRestoring
from services.routing.store.rounds_postgres import PostgresRounds
from services.routing.store.tasks_rows import attempt_of, attempt_row, round_of, task_of
from services.routing.store.tasks_tables import LIVE, attempts, ready, selections, tasks

ENDED = tuple(sorted(state.value for state in TERMINAL_TASKS))


class PostgresTasks(
    PostgresQueue,
    PostgresAlerts,
    PostgresRounds,
    PostgresChecks,
    PostgresLate,
    PostgresQuotas,
    PostgresRestoring,
):
    """`TaskStore` and `AlertStore`."""

    def __init__(self, database: Database) -> None:
        PostgresQueue.__init__(self, database)
        PostgresAlerts.__init__(self, database)

    async def add(self, task: Task) -> Task:
        """See the port."""
        if await self._added(task):
            return replace(task, next_action_at=task.created_at)
        known = await self.get(task.id)
        assert known is not None  # Tasks are never removed
        return known

    async def get(self, task_id: str) -> Task | None:
        """See the port."""
        return await self._one(select(tasks).where(tasks.c.id == task_id))

    async def of_attempt(self, attempt_id: str) -> Task | None:
        """See the port."""
        owner = select(attempts.c.task_id).where(attempts.c.id == attempt_id).scalar_subquery()
        return await self._one(select(tasks).where(tasks.c.id == owner))

    async def of_job(self, channel: str, provider_task_id: str) -> str | None:
        """See the port."""
        holder = select(attempts.c.id).where(
            attempts.c.channel == channel, attempts.c.provider_task_id == provider_task_id
        )
        async with self._database.read() as tx:
            return (await tx.execute(holder.limit(1))).scalar()

    async def find(self, query: TaskQuery) -> tuple[tuple[Task, ...], str]:
        """See the port."""
        wanted = select(tasks).order_by(tasks.c.created_at, tasks.c.id).limit(query.page_size + 1)
        after = key_of(query.page_token)
        if after is not None:
            wanted = wanted.where(func.row(tasks.c.created_at, tasks.c.id) > func.row(*after))
        if query.task_ids:
            wanted = wanted.where(_among(tasks.c.id, query.task_ids))
        if query.states:
            wanted = wanted.where(_among(tasks.c.state, query.states))
        if query.tenant:
            wanted = wanted.where(tasks.c.tenant == query.tenant)
        if query.uncertain:
            wanted = wanted.where(_in_doubt())
        async with self._database.read() as tx:
            found = await _load(tx, wanted)
        page = found[: query.page_size]
        more = len(found) > len(page)
        return tuple(page), token_of(page[-1].created_at, page[-1].id) if more else ""

    async def save(self, write: Write) -> Task:
        """See the port."""
        saved = await (self._saved_with_alerts(write) if write.alerts else self._saved(write))
        if saved is None:
            raise await self._why_refused(write)
        return saved

    async def _saved_with_alerts(self, write: Write) -> Task | None:
        """The write and its alerts, all or nothing."""
        async with self._database.unit() as tx:
            await write_alerts(tx, write.alerts)
            (saved,) = stored((write,), await fetch_within(tx, sql.SAVE, *save_values((write,))))
            if saved is None:
                await tx.rollback()
            return saved

    async def _why_refused(self, write: Write) -> Fault:
        held = await self.get(write.before.id)
        ours = held is not None and held.epoch == write.before.epoch and held.state not in TERMINAL_TASKS
        if held is not None and ours and write.unless_stopped:
            if held.cancel_requested:
                return Fault.of("cancelled", f"a cancel of task {write.before.id} was asked for")
            return Fault.of("conflict", f"task {write.before.id} is paused", metadata=PAUSED)
        return Fault.of("fenced", f"task {write.before.id} has a newer owner or has ended")

    async def ask_cancel(self, task_id: str, reason: str, now: datetime) -> Task | None:
        """See the port."""
        flag = (
            update(tasks)
            .where(tasks.c.id == task_id, tasks.c.state.not_in(ENDED), tasks.c.cancel_requested == false())
            .values(
                cancel_requested=True,
                cancel_reason=reason,
                next_action_at=now,
                timer_at=case((tasks.c.claimed_until.is_(None), bindparam("due", now)), else_=tasks.c.timer_at),
                parked_at=None,
                revision=tasks.c.revision + 1,
            )
        )
        async with self._database.unit() as tx:
            await tx.execute(flag)
            await tx.execute(delete(ready).where(ready.c.task_id == task_id))  # found by its timer alone from now on
            found = await _load(tx, select(tasks).where(tasks.c.id == task_id))
            return found[0] if found else None

    async def correct(self, attempt: Attempt, spent: Money) -> Task:
        """See the port."""
        unspoken = select(attempts.c.id).where(attempts.c.id == attempt.id, attempts.c.resolution == "")
        booked = update(tasks).where(tasks.c.id == attempt.task_id)
        async with self._database.unit() as tx:
            await tx.execute(booked.values(spent=spent.amount, revision=tasks.c.revision + 1))
            if (await tx.execute(unspoken)).first() is None:  # looked at under the Task's lock, which every word takes
                raise Fault.of("conflict", f"attempt {attempt.id} was resolved by somebody else in between")
            await _write_attempts(tx, [attempt])
            return (await _load(tx, select(tasks).where(tasks.c.id == attempt.task_id)))[0]

    async def rounds(self, task_id: str) -> tuple[SelectionRound, ...]:
        """See the port."""
        wanted = select(selections).where(selections.c.task_id == task_id).order_by(selections.c.round)
        async with self._database.read() as tx:
            return tuple(round_of(row) for row in (await tx.execute(wanted)).mappings())

    async def live_leases(self) -> tuple[str, ...]:
        """See the port."""
        wanted = select(attempts.c.lease_id).where(text(LIVE), attempts.c.lease_id != "")
        async with self._database.read() as tx:
            return tuple((await tx.execute(wanted)).scalars())

    async def unreported(self, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        owed = select(attempts).where(attempts.c.report_pending).order_by(attempts.c.finished_at, attempts.c.id)
        async with self._database.read() as tx:
            return tuple(attempt_of(row) for row in (await tx.execute(owed.limit(count))).mappings())

    async def _one(self, wanted: Select[Any]) -> Task | None:
        async with self._database.read() as tx:
            found = await _load(tx, wanted)
        return found[0] if found else None


async def _load(tx: AsyncConnection, wanted: Select[Any]) -> list[Task]:
    """Tasks with their Attempts, in the order of `wanted`: two statements for any number."""
    rows = (await tx.execute(wanted)).mappings().all()
    return await _with_attempts(tx, rows)


async def _with_attempts(tx: AsyncConnection, rows: Sequence[Any]) -> list[Task]:
    if not rows:
        return []
    of_tasks: dict[str, list[Attempt]] = {row["id"]: [] for row in rows}
    wanted = select(attempts).where(_among(attempts.c.task_id, list(of_tasks))).order_by(attempts.c.number)
    for row in (await tx.execute(wanted)).mappings():
        of_tasks[row["task_id"]].append(attempt_of(row))
    return [task_of(row, of_tasks[row["id"]]) for row in rows]


async def _write_attempts(tx: AsyncConnection, changed: Sequence[Attempt]) -> None:
    for attempt in changed:
        row = attempt_row(attempt)
        upsert = insert(attempts).values(row)
        kept = {name: upsert.excluded[name] for name in row if name not in ("id", "task_id", "number")}
        await tx.execute(upsert.on_conflict_do_update(index_elements=["id"], set_=kept))


def _among(column: Any, values: Sequence[str]) -> Any:
    """`column = ANY(:values)`: one parameter for any number, so that the plan and the statement stay the same."""
    return column == any_(bindparam(None, list(values), ARRAY(SqlText)))


def _in_doubt() -> Any:
    unresolved = and_(attempts.c.state == AttemptState.UNRESOLVED.value, attempts.c.resolution == "")
    uncertain = attempts.c.state == AttemptState.SUBMISSION_UNCERTAIN.value
    return select(attempts.c.id).where(attempts.c.task_id == tasks.c.id, or_(uncertain, unresolved)).exists() == true()

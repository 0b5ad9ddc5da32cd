"""Tasks in PostgreSQL.

Laws of this file:
- READ COMMITTED, small transactions, none of them open while anybody outside is asked;
- a claim looks first, then locks that fixed list of ids with SKIP LOCKED: the order is decided before the locks, and
  two claimers never wait for each other;
- every write of a holder names the epoch of its claim, and a Task that has ended matches nothing (ATT-7);
- rows are locked in one order: the Task, then its Attempts, then rounds, then alerts.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    Select,
    and_,
    any_,
    bindparam,
    case,
    false,
    func,
    literal,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)
from sqlalchemy import Text as SqlText
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.store.database import Database
from services.routing.domain.fairness import Turns
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.task import TERMINAL_TASKS, Attempt, AttemptState, Task
from services.routing.ports import Lane, TaskQuery, Write
from services.routing.store.alerts_postgres import PostgresAlerts, write_alerts
from services.routing.store.checks_postgres import PostgresChecks
from services.routing.store.paging import key_of, token_of
from services.routing.store.rounds_postgres import PostgresRounds
from services.routing.store.tasks_rows import (
    CLASSES,
    attempt_of,
    attempt_row,
    round_of,
    round_row,
    task_changes,
    task_of,
    task_row,
)
from services.routing.store.tasks_tables import FOLLOWED, LIVE, attempts, selections, tasks

ENDED = tuple(sorted(state.value for state in TERMINAL_TASKS))

_HEADS = text(
    " UNION ALL ".join(
        f"(SELECT id, urgency FROM tasks WHERE state = 'queued' AND urgency = {place} AND next_action_at <= :now"
        " AND (claimed_until IS NULL OR claimed_until <= :now) ORDER BY next_action_at, id LIMIT :count)"
        for place, _ in enumerate(CLASSES)
    )
)
_FOLLOWED = text(
    f"SELECT id FROM tasks WHERE {FOLLOWED} AND next_action_at <= :now"
    " AND (claimed_until IS NULL OR claimed_until <= :now) ORDER BY next_action_at, id LIMIT :count"
)


class PostgresTasks(PostgresAlerts, PostgresRounds, PostgresChecks):
    """`TaskStore` and `AlertStore`. Turns between the classes of urgency are kept by each process for itself."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._turns = Turns()

    async def add(self, task: Task) -> Task:
        """See the port."""
        row = task_row(task) | {"next_action_at": task.created_at}
        async with self._database.unit() as tx:
            await tx.execute(insert(tasks).values(row).on_conflict_do_nothing(index_elements=["id"]))
            return (await _load(tx, select(tasks).where(tasks.c.id == task.id)))[0]

    async def get(self, task_id: str) -> Task | None:
        """See the port."""
        return await self._one(select(tasks).where(tasks.c.id == task_id))

    async def of_attempt(self, attempt_id: str) -> Task | None:
        """See the port."""
        owner = select(attempts.c.task_id).where(attempts.c.id == attempt_id).scalar_subquery()
        return await self._one(select(tasks).where(tasks.c.id == owner))

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

    async def claim(self, lane: Lane, worker: str, count: int, now: datetime, until: datetime) -> tuple[Task, ...]:
        """See the port."""
        async with self._database.unit() as tx:
            ids = await self._due(tx, lane, count, now)
            if not ids:
                return ()
            return tuple(await _take(tx, ids, worker, now, until, due=True))

    async def claim_one(self, task_id: str, worker: str, now: datetime, until: datetime) -> Task | None:
        """See the port."""
        async with self._database.unit() as tx:
            taken = await _take(tx, [task_id], worker, now, until, due=False)
            return taken[0] if taken else None

    async def _due(self, tx: AsyncConnection, lane: Lane, count: int, now: datetime) -> list[str]:
        """Ids to be claimed, in the order of their turns; a look without locks."""
        bounds = {"now": now, "count": count}
        if lane is Lane.FOLLOW:
            return list((await tx.execute(_FOLLOWED, bounds)).scalars())
        heads: dict[str, list[str]] = {}
        for task_id, place in await tx.execute(_HEADS, bounds):
            heads.setdefault(CLASSES[place], []).append(task_id)
        taken, self._turns = self._turns.take(heads, count)
        return [task_id for _, task_id in taken]

    async def prolong(self, claims: Sequence[tuple[str, int]], until: datetime) -> frozenset[str]:
        """See the port."""
        held = " unnest(CAST(:ids AS text[]), CAST(:epochs AS bigint[])) AS held(id, epoch)"
        prolonged = text(
            f"UPDATE tasks SET claimed_until = :until FROM{held} WHERE tasks.id = held.id"
            " AND tasks.epoch = held.epoch AND tasks.claimed_until IS NOT NULL"
        )
        lost = text(
            f"SELECT held.id FROM{held} LEFT JOIN tasks ON tasks.id = held.id AND tasks.epoch = held.epoch"
            " WHERE tasks.id IS NULL"
        )
        ids = {"ids": [task_id for task_id, _ in claims], "epochs": [epoch for _, epoch in claims]}
        async with self._database.unit() as tx:
            await tx.execute(prolonged, {"until": until, **ids})
            return frozenset((await tx.execute(lost, ids)).scalars())

    async def save(self, write: Write) -> Task:
        """See the port."""
        async with self._database.unit() as tx:
            row = (await tx.execute(_save_statement(write))).mappings().one_or_none()
            if row is None:
                raise await _why_refused(tx, write)
            known = {attempt.id: attempt for attempt in write.before.attempts}
            changed = [attempt for attempt in write.after.attempts if known.get(attempt.id) != attempt]
            await _write_attempts(tx, changed)
            if write.rounds:
                await tx.execute(insert(selections).values([round_row(item) for item in write.rounds]))
            await write_alerts(tx, write.alerts)
        return task_of(row, write.after.attempts)

    async def ask_cancel(self, task_id: str, reason: str, now: datetime) -> Task | None:
        """See the port."""
        flag = (
            update(tasks)
            .where(tasks.c.id == task_id, tasks.c.state.not_in(ENDED), tasks.c.cancel_requested == false())
            .values(cancel_requested=True, cancel_reason=reason, next_action_at=now, revision=tasks.c.revision + 1)
        )
        async with self._database.unit() as tx:
            await tx.execute(flag)
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

    async def wake(self, prefixes: Sequence[str], count: int, now: datetime) -> int:
        """See the port."""
        wanted = or_(*(tasks.c.waiting_reason.startswith(prefix, autoescape=True) for prefix in prefixes))
        heads = union_all(
            *(
                select(tasks.c.id)
                .where(tasks.c.state == text("'queued'"), tasks.c.urgency == place)
                .where(tasks.c.next_action_at > now, _free(now), wanted)
                .order_by(tasks.c.created_at, tasks.c.id)
                .limit(count)
                for place, _ in enumerate(CLASSES)
            )
        )
        async with self._database.unit() as tx:
            ids = (await tx.execute(heads)).scalars().all()
            if not ids:
                return 0
            still = (tasks.c.state == text("'queued'"), tasks.c.next_action_at > now, _free(now))
            locked = (
                select(tasks.c.id)
                .where(_among(tasks.c.id, ids), *still)
                .order_by(tasks.c.id)
                .with_for_update(skip_locked=True)
                .cte("locked")
                .prefix_with("MATERIALIZED", dialect="postgresql")
            )
            woken = update(tasks).where(tasks.c.id == locked.c.id).values(next_action_at=now)
            return int((await tx.execute(woken)).rowcount)

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

    async def reported(self, attempt_ids: Sequence[str]) -> None:
        """See the port."""
        told = update(attempts).where(_among(attempts.c.id, attempt_ids)).values(report_pending=False)
        async with self._database.unit() as tx:
            await tx.execute(told)

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


async def _take(
    tx: AsyncConnection, ids: Sequence[str], worker: str, now: datetime, until: datetime, *, due: bool
) -> list[Task]:
    """Lock what is still free of that list, and claim it. Answers in the order of the list."""
    still = and_(_among(tasks.c.id, ids), tasks.c.state.not_in(ENDED), _free(now))
    if due:
        still = and_(still, tasks.c.next_action_at <= now)
    locked = (
        select(tasks.c.id)
        .where(still)
        .order_by(tasks.c.id)
        .with_for_update(skip_locked=True)
        .cte("locked")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    claim = (
        update(tasks)
        .where(tasks.c.id == locked.c.id)
        .values(epoch=tasks.c.epoch + 1, worker=worker, claimed_until=until)
        .returning(tasks)
    )
    rows = (await tx.execute(claim)).mappings().all()
    place = {task_id: number for number, task_id in enumerate(ids)}
    return await _with_attempts(tx, sorted(rows, key=lambda row: place[row["id"]]))


def _save_statement(write: Write) -> Any:
    """The guarded update. A cancel that the holder has not seen makes the Task due at once."""
    changes = task_changes(write.after) | {"revision": tasks.c.revision + 1}
    if write.after.state not in TERMINAL_TASKS and not write.before.cancel_requested:
        due = literal(write.after.next_action_at, tasks.c.next_action_at.type)
        changes["next_action_at"] = case(
            (tasks.c.cancel_requested, literal(write.now, tasks.c.next_action_at.type)), else_=due
        )
    changes["claimed_until"] = write.until
    if write.until is None:
        changes["worker"] = ""
    guard = [tasks.c.id == write.before.id, tasks.c.epoch == write.before.epoch, tasks.c.state.not_in(ENDED)]
    if write.unless_cancelled:
        guard.append(tasks.c.cancel_requested == false())
    return update(tasks).where(*guard).values(changes).returning(tasks)


async def _why_refused(tx: AsyncConnection, write: Write) -> Fault:
    held = select(tasks.c.id).where(
        tasks.c.id == write.before.id, tasks.c.epoch == write.before.epoch, tasks.c.state.not_in(ENDED)
    )
    if write.unless_cancelled and (await tx.execute(held)).first() is not None:
        return Fault.of("cancelled", f"a cancel of task {write.before.id} was asked for")
    return Fault.of("fenced", f"task {write.before.id} has a newer owner or has ended")


async def _write_attempts(tx: AsyncConnection, changed: Sequence[Attempt]) -> None:
    for attempt in changed:
        row = attempt_row(attempt)
        upsert = insert(attempts).values(row)
        kept = {name: upsert.excluded[name] for name in row if name not in ("id", "task_id", "number")}
        await tx.execute(upsert.on_conflict_do_update(index_elements=["id"], set_=kept))


def _among(column: Any, values: Sequence[str]) -> Any:
    """`column = ANY(:values)`: one parameter for any number, so that the plan and the statement stay the same."""
    return column == any_(bindparam(None, list(values), ARRAY(SqlText)))


def _free(now: datetime) -> Any:
    return or_(tasks.c.claimed_until.is_(None), tasks.c.claimed_until <= now)


def _in_doubt() -> Any:
    unresolved = and_(attempts.c.state == AttemptState.UNRESOLVED.value, attempts.c.resolution == "")
    uncertain = attempts.c.state == AttemptState.SUBMISSION_UNCERTAIN.value
    return select(attempts.c.id).where(attempts.c.task_id == tasks.c.id, or_(uncertain, unresolved)).exists() == true()

"""Tasks in memory: the same contract as PostgreSQL's, for tests and simulation. Nothing survives the process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.domain.fairness import Lines, charge, class_of
from services.routing.domain.rounds import RoundQuery, SelectionRound
from services.routing.domain.shares import due_at
from services.routing.domain.task import TERMINAL_ATTEMPTS, TERMINAL_TASKS, Attempt, AttemptState, Task, TaskState
from services.routing.ports import Lane, TaskQuery, Write
from services.routing.ports.alerts import Alert
from services.routing.ports.pausing import PAUSED
from services.routing.ports.waking import Line, Pick
from services.routing.store.alerts_memory import MemoryAlerts
from services.routing.store.checks_memory import MemoryChecks
from services.routing.store.late_memory import MemoryLate
from services.routing.store.paging import key_of, token_of
from services.routing.store.quotas_memory import MemoryQuotas
from services.routing.store.restoring_memory import MemoryRestoring
from services.routing.store.tasks_rows import CLASSES

_LANES = {
    Lane.DISPATCH: frozenset({TaskState.QUEUED}),
    Lane.FOLLOW: frozenset({TaskState.DISPATCHING, TaskState.RUNNING}),
}


@dataclass
class _Row:
    task: Task
    tag: float
    claimed_until: datetime | None = None
    parked_at: datetime | None = None


class MemoryTasks(MemoryAlerts, MemoryChecks, MemoryLate, MemoryQuotas, MemoryRestoring):
    """`TaskStore` and `AlertStore` over dictionaries. One event loop, no await inside a change: each is atomic."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._rounds: dict[str, list[SelectionRound]] = {}
        self._alerts: dict[str, Alert] = {}
        self._lines = Lines()
        MemoryRestoring.__init__(self)

    async def add(self, task: Task) -> Task:
        """See the port."""
        if task.id not in self._rows:
            self._rows[task.id] = _Row(replace(task, next_action_at=task.created_at), self._tag(task))
            self._rounds[task.id] = []
        return self._rows[task.id].task

    async def get(self, task_id: str) -> Task | None:
        """See the port."""
        row = self._rows.get(task_id)
        return row.task if row else None

    async def find(self, query: TaskQuery) -> tuple[tuple[Task, ...], str]:
        """See the port."""
        after = key_of(query.page_token)
        found = [
            task
            for task in sorted(self._tasks(), key=lambda item: (item.created_at, item.id))
            if (not query.task_ids or task.id in query.task_ids)
            and (not query.states or task.state in query.states)
            and (not query.tenant or task.request.tenant == query.tenant)
            and (not query.uncertain or any(_in_doubt(attempt) for attempt in task.attempts))
            and (after is None or (task.created_at, task.id) > after)
        ]
        page = tuple(found[: query.page_size])
        more = len(found) > len(page)
        return page, token_of(page[-1].created_at, page[-1].id) if more else ""

    async def of_attempt(self, attempt_id: str) -> Task | None:
        """See the port."""
        return next((task for task in self._tasks() if any(a.id == attempt_id for a in task.attempts)), None)

    async def of_job(self, channel: str, provider_task_id: str) -> str | None:
        """See the port."""
        every = (item for task in self._tasks() for item in task.attempts)
        return next((a.id for a in every if (a.channel, a.provider_task_id) == (channel, provider_task_id)), None)

    async def claim(self, lane: Lane, worker: str, count: int, now: datetime, until: datetime) -> tuple[Task, ...]:
        """See the port."""
        due = [row for row in self._rows.values() if row.task.state in _LANES[lane] and _is_due(row, now)]
        if lane is Lane.DISPATCH:
            due.sort(key=lambda row: (not _is_to_end(row.task, now), row.tag, row.task.id))
            for row in due[:count]:
                if not _is_to_end(row.task, now):
                    self._lines.serve(row.tag)
        else:
            due.sort(key=lambda row: (not _is_urgent(row.task), row.task.next_action_at, row.task.id))
        return tuple(self._claim(row, until) for row in due[:count])

    async def claim_one(self, task_id: str, worker: str, now: datetime, until: datetime) -> Task | None:
        """See the port."""
        row = self._rows.get(task_id)
        if row is None or row.task.state in TERMINAL_TASKS or _is_claimed(row, now):
            return None
        return self._claim(row, until)

    async def prolong(self, claims: Sequence[tuple[str, int]], until: datetime) -> frozenset[str]:
        """See the port."""
        lost = set()
        for task_id, epoch in claims:
            row = self._rows.get(task_id)
            if row is None or row.task.epoch != epoch:
                lost.add(task_id)
            elif row.claimed_until is not None:
                row.claimed_until = until
        return frozenset(lost)

    async def save(self, write: Write) -> Task:
        """See the port."""
        row = self._rows.get(write.before.id)
        if row is None or row.task.epoch != write.before.epoch or row.task.state in TERMINAL_TASKS:
            raise Fault.of("fenced", f"task {write.before.id} has a newer owner or has ended")
        if write.unless_stopped and row.task.cancel_requested:
            raise Fault.of("cancelled", f"a cancel of task {write.before.id} was asked for")
        if write.unless_stopped and row.task.paused:
            raise Fault.of("conflict", f"task {write.before.id} is paused", metadata=PAUSED)
        surprised = row.task.cancel_requested and not write.before.cancel_requested
        turned = row.task.paused != write.before.paused and write.after.state is TaskState.QUEUED
        ended = write.after.state in TERMINAL_TASKS
        row.task = replace(
            write.after,
            attempts=_merged(row.task, write),
            revision=row.task.revision + 1,
            epoch=row.task.epoch,
            cancel_requested=row.task.cancel_requested,
            cancel_reason=row.task.cancel_reason,
            paused=row.task.paused,
            doubt=None if write.before.doubt is not None and write.after.doubt is None else row.task.doubt,
            next_action_at=write.now if turned or (surprised and not ended) else write.after.next_action_at,
        )
        row.claimed_until = write.until
        parked = write.until is None and row.task.parked and not row.task.cancel_requested
        row.parked_at = write.now if parked else None
        self._rounds[write.after.id].extend(write.rounds)
        self._raise(write.alerts)
        return row.task

    async def ask_cancel(self, task_id: str, reason: str, now: datetime) -> Task | None:
        """See the port."""
        row = self._rows.get(task_id)
        if row is None or row.task.state in TERMINAL_TASKS or row.task.cancel_requested:
            return row.task if row else None
        row.task = replace(
            row.task, cancel_requested=True, cancel_reason=reason, next_action_at=now, revision=row.task.revision + 1
        )
        row.parked_at = None
        return row.task

    async def pause(self, ends: Mapping[str, datetime]) -> None:
        """See the port."""
        for task_id, end in ends.items():
            row = self._rows.get(task_id)
            if row is None or row.task.state in TERMINAL_TASKS or row.task.paused:
                continue
            waits = row.task.state is TaskState.QUEUED and not row.task.cancel_requested
            at = end if waits else row.task.next_action_at
            row.task = replace(row.task, paused=True, next_action_at=at, revision=row.task.revision + 1)
            row.parked_at = None

    async def unpause(self, task_ids: Sequence[str], now: datetime) -> None:
        """See the port."""
        for task_id in task_ids:
            row = self._rows.get(task_id)
            if row is None or row.task.state in TERMINAL_TASKS or not row.task.paused:
                continue
            at = now if row.task.state is TaskState.QUEUED else row.task.next_action_at
            row.task = replace(row.task, paused=False, next_action_at=at, revision=row.task.revision + 1)

    async def correct(self, attempt: Attempt, spent: Money) -> Task:
        """See the port."""
        row = self._rows[attempt.task_id]
        if any(item.id == attempt.id and item.resolution for item in row.task.attempts):
            raise Fault.of("conflict", f"attempt {attempt.id} was resolved by somebody else in between")
        attempts = tuple(attempt if item.id == attempt.id else item for item in row.task.attempts)
        row.task = replace(row.task, attempts=attempts, spent=spent, revision=row.task.revision + 1)
        return row.task

    async def wake(self, count: int, now: datetime, looked_by: datetime) -> tuple[int, bool]:
        """See the port."""
        parked = self._parked()
        fronts: dict[tuple[str, str], list[_Row]] = {_group(row): [] for row in parked}
        for row in parked:
            front = fronts[_group(row)]
            if _may_be_woken(row, now, looked_by) and len(front) < count:
                front.append(row)
                row.task = replace(row.task, next_action_at=now)
        return sum(map(len, fronts.values())), bool(fronts)

    async def wake_lines(
        self, count: int, now: datetime, looked_by: datetime, after: Line | None
    ) -> tuple[int, Line | None]:
        """See the port. All lines at once."""
        lines: dict[Line, list[_Row]] = {}
        for row in self._parked_by_due():
            lines.setdefault(_line(row.task), []).append(row)
        fronts = [row for line, rows in lines.items() if after is None or line > after for row in rows[:count]]
        woken = [row for row in fronts if _may_be_woken(row, now, looked_by)]
        for row in woken:
            row.task = replace(row.task, next_action_at=now)
        return len(woken), None

    async def wake_first(self, picks: Sequence[Pick], now: datetime) -> Sequence[int]:
        """See the port."""
        woken = []
        for pick in picks:
            alike = [row for row in self._parked_by_due() if (*_line(row.task), row.task.round_key) == pick.group]
            front = [row for row in alike if _may_be_woken(row, now, now)][: pick.count]
            for row in front:
                row.task = replace(row.task, next_action_at=now)
            woken.append(len(front))
        return woken

    def _parked_by_due(self) -> list[_Row]:
        return sorted(self._parked(), key=lambda row: (due_at(row.task), row.task.id))

    def _parked(self) -> list[_Row]:
        """By tag."""
        return sorted(
            (row for row in self._rows.values() if row.parked_at is not None), key=lambda row: (row.tag, row.task.id)
        )

    async def rounds(self, task_id: str) -> tuple[SelectionRound, ...]:
        """See the port."""
        return tuple(self._rounds.get(task_id, ()))

    async def decided(self, query: RoundQuery) -> tuple[SelectionRound, ...]:
        """See the port."""
        found = sorted(self._within(query), key=_place)
        return tuple(item for item in found if query.after is None or _place(item) > query.after)[: query.count]

    async def count_decided(self, query: RoundQuery) -> int:
        """See the port."""
        return sum(1 for _ in self._within(query))

    def _within(self, query: RoundQuery) -> Iterable[SelectionRound]:
        for task_id, rounds in self._rounds.items():
            if not query.model or self._rows[task_id].task.request.model == query.model:
                yield from (item for item in rounds if query.since <= item.decided_at < query.until)

    async def live_leases(self) -> tuple[str, ...]:
        """See the port."""
        return tuple(
            attempt.lease_id
            for task in self._tasks()
            for attempt in task.attempts
            if attempt.lease_id and attempt.state not in TERMINAL_ATTEMPTS
        )

    async def unreported(self, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        owed = [attempt for task in self._tasks() for attempt in task.attempts if attempt.report_pending]
        return tuple(sorted(owed, key=_finish_key)[:count])

    async def reported(self, attempt_ids: Sequence[str]) -> None:
        """See the port."""
        told = frozenset(attempt_ids)
        for row in self._rows.values():
            if any(attempt.id in told for attempt in row.task.attempts):
                attempts = tuple(replace(a, report_pending=a.report_pending and a.id not in told)
                                 for a in row.task.attempts)  # fmt: skip
                row.task = replace(row.task, attempts=attempts)

    def _tasks(self) -> Iterable[Task]:
        return (row.task for row in self._rows.values())

    def _tag(self, task: Task) -> float:
        urgency = class_of(task.request)
        line = (task.request.tenant, task.request.model, urgency)
        return self._lines.enter(line, charge(task.kind, task.request.input, urgency))

    def _claim(self, row: _Row, until: datetime) -> Task:
        row.task = replace(row.task, epoch=row.task.epoch + 1)
        row.claimed_until = until
        return row.task


def _merged(stored: Task, write: Write) -> tuple[Attempt, ...]:
    """The Attempts that the write changes, and the others as they stand by now."""
    known = {attempt.id: attempt for attempt in write.before.attempts}
    kept = {attempt.id: attempt for attempt in stored.attempts}
    return tuple(kept[a.id] if known.get(a.id) == a and a.id in kept else a for a in write.after.attempts)


def _line(task: Task) -> Line:
    return task.request.model, task.request.tenant, CLASSES.index(class_of(task.request))


def _group(row: _Row) -> tuple[str, str]:
    return row.task.request.model, row.task.round_key


def _is_claimed(row: _Row, now: datetime) -> bool:
    return row.claimed_until is not None and row.claimed_until > now


def _may_be_woken(row: _Row, now: datetime, looked_by: datetime) -> bool:
    """Whether a parked Task may be made due: nobody has it, it is not due yet, and it looked last by then."""
    waits = row.claimed_until is None and (row.task.next_action_at is None or row.task.next_action_at > now)
    return waits and row.parked_at is not None and row.parked_at <= looked_by


def _is_due(row: _Row, now: datetime) -> bool:
    at = row.task.next_action_at
    return row.task.state not in TERMINAL_TASKS and not _is_claimed(row, now) and (at is None or at <= now)


def _is_to_end(task: Task, now: datetime) -> bool:
    """Whether a queued Task is only to be ended: no turn is waited for, and none is used up."""
    deadline = task.request.deadline
    return task.cancel_requested or (deadline is not None and deadline <= now)


def _is_urgent(task: Task) -> bool:
    return task.state is TaskState.DISPATCHING or task.cancel_requested


def _in_doubt(attempt: Attempt) -> bool:
    unresolved = attempt.state is AttemptState.UNRESOLVED and not attempt.resolution
    return unresolved or attempt.state is AttemptState.SUBMISSION_UNCERTAIN


def _place(item: SelectionRound) -> tuple[datetime, str, int]:
    return (item.decided_at, item.task_id, item.round)


def _finish_key(attempt: Attempt) -> Any:
    return (attempt.finished_at, attempt.id)

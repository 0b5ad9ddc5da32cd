"""What the running checks read, in memory: the twin of `checks_postgres`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from services.routing.domain.standing import Limits, Standing, findings, matching
from services.routing.domain.task import TERMINAL_ATTEMPTS, TERMINAL_TASKS, Attempt, Task, TaskState
from services.routing.ports.standing import Part, Place

FOLLOWED = frozenset({TaskState.DISPATCHING, TaskState.RUNNING})


class MemoryChecks:
    """`StandingReader`. `_rows` is set by whoever it is a part of: Task id -> a row of `tasks_memory`."""

    _rows: dict[str, Any]

    async def suspects(
        self, part: Part, after: Place | None, count: int, bounds: Limits
    ) -> tuple[Sequence[tuple[Standing, int]], Place | None]:
        """See the port."""
        rows = sorted((item for item in self._standings() if _belongs(item, part)), key=lambda item: item.task_id)
        rest = [item for item in rows if after is None or (item.task_id,) > after]
        taken = rest[:count]
        found = [(item, matching(item)) for item in taken]
        wrong = [(item, matches) for item, matches in found if findings(item, matches, bounds)]
        return wrong, (taken[-1].task_id,) if len(rest) >= count and taken else None

    async def heads(self, now: datetime, since: datetime) -> Mapping[str, Standing]:
        """See the port."""
        first: dict[str, tuple[Any, Standing]] = {}
        for row in self._rows.values():
            item = standing_of(row.task, row.claimed_until)
            line, place = _line(row, item)
            waits = _is_free(item, now, since)
            if item.parked and item.next_action_at is not None:
                waits = row.parked_at <= since and item.next_action_at > now
            if line and waits and (line not in first or place < first[line][0]):
                first[line] = (place, item)
        return {line: item for line, (_, item) in first.items()}

    async def owed(self, since: datetime, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        pending = [item for item in self._attempts() if item.report_pending and item.finished_at]
        late = [(item.finished_at, item.id, item) for item in pending if item.finished_at and item.finished_at < since]
        return tuple(item for _, _, item in sorted(late, key=lambda entry: entry[:2])[:count])

    async def unheld(self, lease_ids: Sequence[str], since: datetime) -> Mapping[str, str]:
        """See the port."""
        known = {item.lease_id: item for item in self._attempts()}
        return {
            lease_id: known[lease_id].task_id if lease_id in known else ""
            for lease_id in lease_ids
            if lease_id not in known or _ended_before(known[lease_id], since)
        }

    def _attempts(self) -> Iterator[Attempt]:
        return (attempt for row in self._rows.values() for attempt in row.task.attempts)

    def _standings(self) -> Iterator[Standing]:
        for row in self._rows.values():
            if row.task.state not in TERMINAL_TASKS or row.task.live is not None:
                yield standing_of(row.task, row.claimed_until)


def _line(row: Any, item: Standing) -> tuple[str, Any]:
    """The line that it stands in, and its place there."""
    if item.parked:
        return f"parked {row.task.request.model} {row.task.round_key}", (row.tag, item.task_id)
    if item.task is TaskState.QUEUED:
        timed = item.epoch or row.task.paused
        return ("timer", (item.next_action_at, item.task_id)) if timed else ("ready", (row.tag, item.task_id))
    return "followed" if item.task in FOLLOWED else "", (item.next_action_at, item.task_id)


def standing_of(task: Task, claimed_until: datetime | None) -> Standing:
    """Where a Task stands."""
    live = task.live
    base = Standing(task.id, task.state, task.next_action_at, claimed_until, task.waiting_reason, task.epoch)
    if live is None:
        held = task.paused and task.state is TaskState.QUEUED
        return replace(base, parked=task.parked and claimed_until is None, held=held and claimed_until is None)
    return replace(
        base,
        attempt_id=live.id,
        live=live.state,
        provider_task_id=live.provider_task_id,
        uncertain_deadline=live.uncertain_deadline,
        polls_failing_since=live.polls_failing_since,
    )


def _belongs(item: Standing, part: Part) -> bool:
    if part is Part.LIVE:
        return item.live is not None
    if item.next_action_at is None or part is Part.UNTIMED:
        return item.next_action_at is None and part is Part.UNTIMED and item.task not in TERMINAL_TASKS
    return item.task is TaskState.QUEUED if part is Part.QUEUED else item.task in FOLLOWED


def _is_free(item: Standing, now: datetime, since: datetime) -> bool:
    claimed = item.claimed_until is not None and item.claimed_until > now
    return not claimed and item.next_action_at is not None and item.next_action_at <= since


def _ended_before(attempt: Attempt, since: datetime) -> bool:
    return attempt.state in TERMINAL_ATTEMPTS and attempt.finished_at is not None and attempt.finished_at < since

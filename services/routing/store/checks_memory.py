"""What the running checks read, in memory: the twin of `checks_postgres`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.routing.domain.fairness import WEIGHTS
from services.routing.domain.standing import Limits, Standing, findings, matching
from services.routing.domain.task import TERMINAL_ATTEMPTS, TERMINAL_TASKS, Attempt, Task, TaskState
from services.routing.ports.standing import Part, Place

FOLLOWED = frozenset({TaskState.DISPATCHING, TaskState.RUNNING})


class MemoryChecks:
    """`StandingReader`. `_rows` is set by whoever it is a part of: Task id -> row with `task` and `claimed_until`."""

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
        return wrong, (taken[-1].task_id,) if len(rest) >= count and taken and part is not Part.LOST else None

    async def heads(self, now: datetime, since: datetime) -> Mapping[str, Standing]:
        """See the port."""
        first: dict[str, Standing] = {}
        for line in (*WEIGHTS, "followed"):
            due = [item for item in self._standings() if self._line(item) == line and _is_free(item, now, since)]
            if due:
                first[line] = min(due, key=lambda item: (item.next_action_at, item.task_id))
        return first

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

    def _line(self, item: Standing) -> str:
        if item.task is TaskState.QUEUED:
            priority: str = self._rows[item.task_id].task.request.priority
            return priority
        return "followed" if item.task in FOLLOWED else ""


def standing_of(task: Task, claimed_until: datetime | None) -> Standing:
    """Where a Task stands."""
    live = task.live
    base = Standing(task.id, task.state, task.next_action_at, claimed_until, task.waiting_reason, task.epoch)
    if live is None:
        return base
    return Standing(
        task_id=task.id,
        task=task.state,
        next_action_at=task.next_action_at,
        claimed_until=claimed_until,
        waiting_reason=task.waiting_reason,
        epoch=task.epoch,
        attempt_id=live.id,
        live=live.state,
        provider_task_id=live.provider_task_id,
        uncertain_deadline=live.uncertain_deadline,
        polls_failing_since=live.polls_failing_since,
    )


def _belongs(item: Standing, part: Part) -> bool:
    if part is Part.LIVE:
        return item.live is not None
    if part is Part.LOST:
        return item.task not in TERMINAL_TASKS and item.next_action_at is None
    return item.task is TaskState.QUEUED if part is Part.QUEUED else item.task in FOLLOWED


def _is_free(item: Standing, now: datetime, since: datetime) -> bool:
    claimed = item.claimed_until is not None and item.claimed_until > now
    return not claimed and item.next_action_at is not None and item.next_action_at <= since


def _ended_before(attempt: Attempt, since: datetime) -> bool:
    return attempt.state in TERMINAL_ATTEMPTS and attempt.finished_at is not None and attempt.finished_at < since

"""Late words in memory: the twin of `late_postgres`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from services.routing.domain.late import asked_again
from services.routing.domain.task import TERMINAL_TASKS, Attempt, Task
from services.routing.ports.alerts import Alert


class MemoryLate:
    """`LateStore`. What it leans on is set by whoever it is a part of: Task id -> row with `task`."""

    _rows: dict[str, Any]

    def _raise(self, raised: Sequence[Alert]) -> None:
        raise AssertionError("whoever has rows has alerts")

    async def take_late(self, now: datetime, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        due = [
            (attempt.late_look_at, attempt.id, attempt)
            for row in self._rows.values()
            for attempt in row.task.attempts
            if attempt.late_look_at is not None and attempt.late_look_at <= now
        ]
        taken = tuple(asked_again(attempt, now) for _, _, attempt in sorted(due, key=lambda entry: entry[:2])[:count])
        for attempt in taken:
            self._replace(attempt)
        return taken

    async def book_late(self, task: Task, before: Attempt, after: Attempt, alerts: Sequence[Alert]) -> bool:
        """See the port."""
        row = self._rows[task.id]
        known = next(item for item in row.task.attempts if item.id == before.id)
        same = (known.resolution, known.provider_task_id) == (before.resolution, before.provider_task_id)
        if row.task.state not in TERMINAL_TASKS or row.task.revision != task.revision or known.late or not same:
            return False
        self._replace(after)
        row.task = replace(row.task, spent=task.spent, revision=row.task.revision + 1)
        self._raise(alerts)
        return True

    def _replace(self, attempt: Attempt) -> None:
        row = self._rows[attempt.task_id]
        others = tuple(attempt if item.id == attempt.id else item for item in row.task.attempts)
        row.task = replace(row.task, attempts=others)

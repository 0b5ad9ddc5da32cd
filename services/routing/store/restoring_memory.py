"""Lives and restores in memory: the twin of `restoring_postgres`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from services.routing.domain.doubt import Life, Restore
from services.routing.domain.task import TERMINAL_TASKS, Doubt, TaskState


class MemoryRestoring:
    """`Restoring`. What it leans on is set by whoever it is a part of: Task id -> row with `task`, `claimed_until`."""

    _rows: dict[str, Any]

    def __init__(self) -> None:
        self._life: Life | None = None
        self._pulse = 0
        self._restores: dict[datetime, Restore] = {}

    async def life(self, database: str, now: datetime) -> Life:
        """See the port."""
        self._life = self._life or Life(database, 0, now)
        return self._life

    async def beat(self, at_least: int, now: datetime) -> Life:
        """See the port."""
        assert self._life is not None, "what beats has begun"
        self._life = replace(self._life, beat=max(self._life.beat, at_least) + 1, at=now)
        return self._life

    async def pulse(self, seen: int | None = None) -> int:
        """See the port."""
        if seen == self._pulse and self._life is not None:
            self._pulse += 1
        return self._pulse

    async def put_back(self, backup_at: datetime, now: datetime, before: datetime) -> int:
        """See the port."""
        if backup_at in self._restores:
            return 0
        self._restores[backup_at] = Restore(backup_at, now, pulse=self._pulse)
        found = [row for row in self._rows.values() if row.task.state not in TERMINAL_TASKS]
        found = [row for row in found if row.task.created_at <= before]
        for row in found:
            known, queued = row.task.doubt, row.task.state is TaskState.QUEUED
            row.task = replace(
                row.task,
                doubt=Doubt(min(backup_at, known.since) if known else backup_at, now),
                epoch=row.task.epoch + queued,
                revision=row.task.revision + 1,
                next_action_at=now if queued else row.task.next_action_at,
            )
            if queued:
                row.claimed_until = row.parked_at = None
        return len(found)

    async def restores(self) -> Sequence[Restore]:
        """See the port."""
        return [self._restores[key] for key in sorted(self._restores)]

    async def no_doubt(self, backup_at: datetime | None, now: datetime) -> int:
        """See the port."""
        for key, known in self._restores.items():
            if known.over_at is None and backup_at in (None, key):
                self._restores[key] = replace(known, over_at=now)
        if any(known.over_at is None for known in self._restores.values()):
            return 0
        freed = 0
        for row in self._rows.values():
            if row.task.doubt is not None and row.task.state not in TERMINAL_TASKS:
                row.task = replace(row.task, doubt=None, revision=row.task.revision + 1)
                freed += row.task.state is TaskState.QUEUED
        return freed

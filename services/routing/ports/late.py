"""Attempts that ended by our own timeout and are asked about once more (ATT-6, COST-12)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.routing.domain.task import Attempt, Task
from services.routing.ports.alerts import Alert


class LateStore(Protocol):
    """One contract suite proves every implementation."""

    async def take_late(self, now: datetime, count: int) -> tuple[Attempt, ...]:
        """Attempts whose late look is due, oldest first, each with its next look written already: no other process
        takes them before that."""
        ...

    async def book_late(self, task: Task, before: Attempt, after: Attempt, alerts: Sequence[Alert]) -> bool:
        """Write `after` in the place of `before`, what `task` has spent, and the alerts. False, and nothing is written,
        unless the Task has ended and the Attempt has no late word, no other resolution and no other job's id yet."""
        ...

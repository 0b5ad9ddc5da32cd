"""Counts of Runs in memory: the twin of `quotas_postgres`."""

from collections.abc import Sequence
from typing import Any

from services.routing.domain.task import TaskState
from services.routing.domain.tenant_quotas import run_of

AT_PROVIDERS = frozenset({TaskState.DISPATCHING, TaskState.RUNNING})


class MemoryQuotas:
    """`QuotaReader`. What it leans on is set by whoever it is a part of: Task id -> row with `task`."""

    _rows: dict[str, Any]

    async def runs_at_providers(self, tenants: Sequence[str]) -> Sequence[tuple[str, str]]:
        """See the port."""
        tasks = [row.task for row in self._rows.values()]
        found = {
            (task.request.tenant, run_of(task))
            for task in tasks
            if task.state in AT_PROVIDERS and task.request.tenant in tenants
        }
        return sorted(found)

    async def waiting_runs(self, tenant: str, most: int) -> int:
        """See the port."""
        running = {run for _, run in await self.runs_at_providers([tenant])}
        tasks = [row.task for row in self._rows.values()]
        waiting = {run_of(task) for task in tasks if task.state is TaskState.QUEUED and task.request.tenant == tenant}
        return min(most, len(waiting - running))

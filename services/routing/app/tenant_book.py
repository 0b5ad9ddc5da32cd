"""What this process has chosen or let in for a tenant a moment ago, and no row tells yet (AUTH-2)."""

from collections.abc import Collection, Iterable

from services.routing.domain.task import Task
from services.routing.domain.tenant_quotas import run_of

HAND_OVER_S = 5.0
"""After this long a Run that was let in has been handed over, or never will be."""


class TenantBook:
    """Of one process; gone with it, and then the rows tell all."""

    def __init__(self) -> None:
        self._chosen: dict[str, tuple[str, str]] = {}
        self._let_in: dict[str, dict[str, float]] = {}
        """By tenant: when its Runs were let in, by id, the oldest first."""

    def choose(self, task: Task) -> None:
        """A Supply was chosen for the Task; its row does not say so yet."""
        self._chosen[task.id] = (task.request.tenant, run_of(task))

    def leave(self, task: Task) -> None:
        """Its row says by now how it stands, or nothing came of it."""
        self._chosen.pop(task.id, None)

    @property
    def chosen(self) -> Iterable[tuple[str, str]]:
        """(tenant, Run) of what was chosen."""
        return self._chosen.values()

    def let_in(self, tenant: str, run_id: str, now_s: float) -> None:
        """A Run of the tenant was found good; its Task will come."""
        self._let_in.setdefault(tenant, {})[run_id] = now_s

    def handed_over(self, tenant: str, run_id: str) -> None:
        """A Task of that Run has come."""
        self._let_in.get(tenant, {}).pop(run_id, None)

    def to_come(self, tenant: str, now_s: float) -> Collection[str]:
        """The Runs that were let in and have not come."""
        waited = self._let_in.get(tenant, {})
        for run_id in [run_id for run_id, at_s in waited.items() if now_s - at_s > HAND_OVER_S]:
            del waited[run_id]
        return waited.keys()

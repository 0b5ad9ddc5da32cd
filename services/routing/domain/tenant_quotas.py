"""How many Runs of a tenant may wait, and how many may have work with providers (AUTH-2, RUN-1a).

Laws of this file:
- a Run is with providers while one of its Tasks has an Attempt that has not ended, and waits while one of its Tasks
  waits and none is there; a Task without a Run is one of its own;
- a Run that is with providers already may send more: the quota bounds Runs, not Attempts;
- 0, or no number, is no quota.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from libs.faults.fault import Fault
from services.routing.domain.catalog import Catalog
from services.routing.domain.task import Task

REASON = "quota"
"""First word of the reason of a Task that waits for its tenant's quota; see `task.PARKED`."""


def running_limit(catalog: Catalog, tenant: str) -> int:
    """How many Runs of the tenant may be with providers at once."""
    return _quota(catalog, tenant, "running_runs")


def queued_limit(catalog: Catalog, tenant: str) -> int:
    """How many Runs of the tenant may wait."""
    return _quota(catalog, tenant, "queued_runs")


def _quota(catalog: Catalog, tenant: str, name: str) -> int:
    known = catalog.tenants.get(tenant)
    return known.quotas.get(name, 0) if known else 0


def run_of(task: Task) -> str:
    """The Run that a Task counts for."""
    return task.run_id or task.id


def group_of(task: Task) -> str:
    """What Tasks that wait for one quota have in common: they are woken as one group."""
    return f"{REASON} {task.request.tenant}"


def too_many_wait(tenant: str, limit: int) -> Fault:
    """Why no further Run is taken."""
    return Fault.of("quota_exceeded", f"{limit} of {limit} runs of tenant {tenant!r} are waiting")


@dataclass(frozen=True, slots=True)
class Room:
    """The Runs with providers, of each tenant that has a quota; `enter` counts what was chosen since."""

    limits: Mapping[str, int]
    running: Mapping[str, set[str]]

    @staticmethod
    def of(limits: Mapping[str, int], running: Iterable[tuple[str, str]]) -> "Room":
        """From (tenant, Run) pairs."""
        found: dict[str, set[str]] = {tenant: set() for tenant in limits}
        for tenant, run in running:
            if tenant in found:
                found[tenant].add(run)
        return Room(limits, found)

    def refusal(self, task: Task) -> str:
        """Why the Task waits for its tenant's quota, "" where it does not."""
        tenant = task.request.tenant
        limit = self.limits.get(tenant, 0)
        running = self.running.get(tenant, set())
        if not limit or len(running) < limit or run_of(task) in running:
            return ""
        return f"{REASON}: {len(running)} of {limit} runs of the tenant are with providers"

    def enter(self, task: Task) -> None:
        """Its Run is with a provider from now on."""
        if task.request.tenant in self.running:
            self.running[task.request.tenant].add(run_of(task))

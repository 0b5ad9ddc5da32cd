"""What the quotas of tenants are counted from. One contract suite proves every implementation."""

from collections.abc import Sequence
from typing import Protocol


class QuotaReader(Protocol):
    """Counts open Tasks by their Runs; a Task without a Run counts as one of its own id."""

    async def runs_at_providers(self, tenants: Sequence[str]) -> Sequence[tuple[str, str]]:
        """(tenant, Run) of every Run of theirs that has a Task in `dispatching` or `running`."""
        ...

    async def waiting_runs(self, tenant: str, most: int) -> int:
        """How many Runs of the tenant have a Task in `queued` and none with a provider; counted up to `most`."""
        ...

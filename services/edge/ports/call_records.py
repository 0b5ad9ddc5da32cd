"""Records of synchronous calls that have ended. An empty tenant means any, which is for operators. Methods raise Fault
and nothing else."""

from typing import Protocol

from services.edge.domain import call_shapes


class CallRecords(Protocol):
    """What `routing` keeps of calls; nothing changes by it."""

    async def page(
        self, tenant: str, which: call_shapes.CallFilter, size: int, token: str
    ) -> tuple[list[call_shapes.TenantCall], str]:
        """(Calls, the newest end first; the token of the next page or "")."""
        ...

"""Runs of every tenant, for operators to read. An empty tenant means any. Calls raise Fault and nothing else."""

from collections.abc import Sequence
from typing import Protocol

from services.edge.domain import run_shapes, shapes


class Overseeing(Protocol):
    """The context `runs`, as operators read it; nothing changes by it."""

    async def page(
        self, tenant: str, statuses: Sequence[str], label: str, size: int, token: str
    ) -> tuple[list[run_shapes.TenantRun], str]:
        """(Runs, newest first; the token of the next page or "")."""
        ...

    async def get(self, run_id: str) -> run_shapes.TenantRun:
        """One Run, whoever's it is; Fault not_found."""
        ...

    async def events(self, run_id: str, after: int, size: int) -> list[shapes.RunEvent]:
        """Events after a cursor; Faults not_found, history_pruned, and malformed_request for one that lies ahead."""
        ...

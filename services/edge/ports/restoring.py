"""What is known of a database that was put back to a backup. Calls raise Fault and nothing else."""

from datetime import datetime
from typing import Protocol

from services.edge.domain import restore_shapes


class Restoring(Protocol):
    """The context `routing`: what may have been submitted after a backup is looked up before it is sent again."""

    async def restored(self, backup_at: datetime | None, over: bool) -> restore_shapes.Restores:
        """The database was put back to that moment; with `over` nothing of that, or without a moment of anything, needs
        to be looked up any more. Faults validation_failed, not_found."""
        ...

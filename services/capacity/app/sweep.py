"""Ends leases whose time is over, so that who waits hears of it."""

from services.capacity.app.freed import Freed
from services.capacity.ports import CapacityStore


class Sweep:
    """A lapsed lease counts nowhere whether or not it was swept; this only tells and tidies."""

    def __init__(self, store: CapacityStore, freed: Freed) -> None:
        self._store = store
        self._freed = freed

    async def __call__(self) -> None:
        """One round."""
        self._freed.tell(await self._store.sweep())

"""Gives a lease back, also when the caller has gone (CAP-8)."""

import asyncio
import logging

from libs.faults.fault import Fault
from services.capacity.app.freed import Freed
from services.capacity.domain.pacing import SILENT, Feedback
from services.capacity.ports import CapacityStore

log = logging.getLogger(__name__)


class Release:
    """A release, once begun, is finished whatever becomes of its call. One that fails is left to the lease's end."""

    def __init__(self, store: CapacityStore, freed: Freed) -> None:
        self._store = store
        self._freed = freed
        self._running: set[asyncio.Task[bool]] = set()

    async def __call__(self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT) -> bool:
        """True if this call freed it. Doing it twice is harmless."""
        if not lease_id or not holder:
            raise Fault.invalid(("/lease_id" if not lease_id else "/holder", "is required"))
        if used_tokens is not None and used_tokens < 0:
            raise Fault.invalid(("/used_tokens", "must not be negative"))
        task = asyncio.create_task(self._release(lease_id, holder, used_tokens, feedback), name=f"release {lease_id}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for releases in hand. The store's own limits bound each of them."""
        while self._running:
            await asyncio.wait(tuple(self._running))

    async def _release(self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback) -> bool:
        lease = await self._store.release(lease_id, holder, used_tokens, feedback)
        if lease is None:
            return False
        self._freed.tell(lease.subjects)
        return True

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("%s failed; the lease ends by its time to live: %s", task.get_name(), error)

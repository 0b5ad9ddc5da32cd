"""Gives a lease back, also when the caller has gone (CAP-8)."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from libs.faults.fault import Fault
from services.capacity.app.freed import Freed
from services.capacity.domain.leases import Lease
from services.capacity.domain.pacing import SILENT, Feedback
from services.capacity.ports import CapacityStore

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """One lease to be given back; `used_tokens` is None where nobody knows."""

    lease_id: str
    holder: str
    used_tokens: int | None = None
    feedback: Feedback = SILENT


class Release:
    """A release, once begun, is finished whatever becomes of its call. One that fails is left to the lease's end."""

    def __init__(self, store: CapacityStore, freed: Freed) -> None:
        self._store = store
        self._freed = freed
        self._running: set[asyncio.Task[list[bool]]] = set()

    async def __call__(self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT) -> bool:
        """True if this call freed it. Doing it twice is harmless."""
        return (await self.each((Asked(lease_id, holder, used_tokens, feedback),)))[0]

    async def each(self, asked: Sequence[Asked]) -> list[bool]:
        """Each as if alone, in their order. Raises the first fault, when none is under way any more."""
        named = ", ".join([item.lease_id for item in asked])
        task = asyncio.create_task(self._release(asked), name=f"release {named}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for releases in hand. The store's own limits bound each of them."""
        while self._running:
            await asyncio.wait(tuple(self._running))

    async def _release(self, asked: Sequence[Asked]) -> list[bool]:
        faults = [_fault(item) for item in asked]
        begun = [self._store.release(*item) for item, fault in zip(asked, faults, strict=True) if fault is None]
        answers = await asyncio.gather(*begun, return_exceptions=True)
        freed = [subject for lease in answers if isinstance(lease, Lease) for subject in lease.subjects]
        if freed:
            self._freed.tell(freed)
        told = iter(answers)
        ends = [next(told) if fault is None else fault for fault in faults]
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        return [end is not None for end in ends]

    def _ended(self, task: asyncio.Task[list[bool]]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("%s failed; the lease ends by its time to live: %s", task.get_name(), error)


def _fault(asked: Asked) -> Fault | None:
    """What is wrong with the question."""
    if not asked.lease_id or not asked.holder:
        return Fault.invalid(("/lease_id" if not asked.lease_id else "/holder", "is required"))
    if asked.used_tokens is not None and asked.used_tokens < 0:
        return Fault.invalid(("/used_tokens", "must not be negative"))
    return None

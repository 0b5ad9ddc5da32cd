"""Tells the watchers of this process that capacity was freed. Never needed for correctness: waiters scan anyway."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from libs.kernel.clock import Clock
from services.capacity.domain.levels import Subject


class Inbox:
    """What one watcher has not yet been told."""

    def __init__(self) -> None:
        self._subjects: set[Subject] = set()
        self._filled = asyncio.Event()

    def put(self, subjects: Iterable[Subject]) -> None:
        """Add levels; many puts before a take are one."""
        self._subjects.update(subjects)
        self._filled.set()

    async def take(self, within_s: float, clock: Clock) -> frozenset[Subject]:
        """What was put, at once or within that time; empty when nothing was."""
        waits = [asyncio.ensure_future(self._filled.wait()), asyncio.ensure_future(clock.sleep(within_s))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        taken = frozenset(self._subjects)
        self._subjects.clear()
        self._filled.clear()
        return taken


class Freed:
    """A bell with a message. Belongs to one event loop."""

    def __init__(self) -> None:
        self._inboxes: set[Inbox] = set()

    def tell(self, subjects: Iterable[Subject]) -> None:
        """These levels may admit more than before."""
        told = frozenset(subjects)
        for inbox in self._inboxes if told else ():
            inbox.put(told)

    @contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """A watcher's inbox while the block runs."""
        inbox = Inbox()
        self._inboxes.add(inbox)
        try:
            yield inbox
        finally:
            self._inboxes.discard(inbox)

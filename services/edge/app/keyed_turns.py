"""One creation at a time for each idempotency key (IDEM-1).

Whoever comes with a key that is in flight at this replica waits for its turn, and finds what the one before it made.
Across replicas the row of the key does the same, for the moment of the commit: see decision 24. A turn is no truth:
what is made once is made once without it too; it spares the work twice and gives a late answer its right name.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from libs.faults.fault import Fault
from libs.kernel.clock import Clock

Name = tuple[str, str, str]
"""(tenant, route, key)."""


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    claims: int = 0


class KeyedTurns:
    """The turns of this process; a key that nobody has in hand takes no memory."""

    def __init__(self, clock: Clock, wait_s: float) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._turns: dict[Name, _Turn] = {}

    @asynccontextmanager
    async def of(self, name: Name) -> AsyncIterator[None]:
        """While inside, the key is in flight. Fault idempotency_in_progress if its turn does not come in time."""
        turn = self._turns.setdefault(name, _Turn())
        turn.claims += 1
        try:
            await self._take(turn.lock, name[2])
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            turn.claims -= 1
            if not turn.claims:
                del self._turns[name]

    async def _take(self, lock: asyncio.Lock, key: str) -> None:
        if not lock.locked():
            await lock.acquire()
            return
        taking, tick = asyncio.create_task(lock.acquire()), asyncio.create_task(self._clock.sleep(self._wait_s))
        try:
            await asyncio.wait({taking, tick}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not taking.cancel():  # it was granted while we were told to leave
                lock.release()
            raise
        finally:
            tick.cancel()
        if not taking.done():
            taking.cancel()
            told = f"key {key!r} is in flight for more than {self._wait_s:g} s"
            raise Fault.of("idempotency_in_progress", told)

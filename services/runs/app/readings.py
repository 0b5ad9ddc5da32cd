"""What streams and joins read. Those that stand at one cursor of one Run are woken together and share one read.

Laws of this file:
- few reads are under way at once: a crowd queues here, where it costs nothing, and leaves connections to the ticks;
- a shared read may have begun before who joins it was woken, so it may tell less than is there, never more: who finds
  nothing waits for the next wake and reads again;
- whoever leaves takes nobody's read along.
"""

import asyncio
from collections.abc import Sequence

from services.runs.domain.run import Event, Run
from services.runs.ports import Runs

AT_ONCE = 4
BATCH = 500
Read = tuple[Sequence[Event], Run | None]


class Readings:
    """Of one process, over one store."""

    def __init__(self, runs: Runs, at_once: int = AT_ONCE) -> None:
        self._runs = runs
        self._turns = asyncio.Semaphore(at_once)
        self._under_way: dict[tuple[str, int], asyncio.Task[Read]] = {}

    async def run(self, run_id: str) -> Run | None:
        """The Run as it is now, read for this caller alone."""
        async with self._turns:
            return await self._runs.get(run_id)

    async def after(self, run_id: str, after: int) -> Read:
        """(At most `BATCH` events above `after`, the Run as it was no earlier than these), shared."""
        key = (run_id, after)
        reading = self._under_way.get(key)
        if reading is None:
            reading = self._under_way[key] = asyncio.create_task(self._read(run_id, after))
            reading.add_done_callback(lambda done: self._over(key, done))
        return await asyncio.shield(reading)

    async def _read(self, run_id: str, after: int) -> Read:
        async with self._turns:
            events = await self._runs.events(run_id, after, BATCH)
            return events, await self._runs.get(run_id)

    def _over(self, key: tuple[str, int], done: "asyncio.Task[Read]") -> None:
        del self._under_way[key]
        if not done.cancelled():
            done.exception()  # everybody who waited may have left

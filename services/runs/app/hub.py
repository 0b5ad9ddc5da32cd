"""Who waits for which Run. One query a look serves every waiter of this process; own commits wake them at once."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from services.runs.app.readings import Readings
from services.runs.ports import Runs


class Hub:
    """Wakes those who wait for a Run's next event. A missed wake costs at most one poll, never an event."""

    def __init__(self, runs: Runs, *, hints: bool = True) -> None:
        """Without `hints` own commits wake nobody: the poll alone finds them."""
        self._runs = runs
        self.readings = Readings(runs)
        """How those who were woken read."""
        self._hints = hints
        self._known: dict[str, int] = {}
        self._watchers: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    @contextmanager
    def watching(self, run_id: str) -> Iterator[None]:
        """While inside, the Run is part of the poll. Enter before the first read, so that nothing falls between."""
        self._watchers[run_id] += 1
        try:
            yield
        finally:
            self._watchers[run_id] -= 1
            if not self._watchers[run_id]:
                del self._watchers[run_id]
                self._known.pop(run_id, None)

    async def wait(self, run_id: str, after: int) -> None:
        """Return once the Run is known to have an event above `after`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._known.get(run_id, 0) > after)

    async def tell(self, run_id: str, sequence: int) -> None:
        """This process has committed an event."""
        if self._hints and run_id in self._watchers and sequence > self._known.get(run_id, 0):
            async with self._changed:
                self._known[run_id] = sequence
                self._changed.notify_all()

    async def poll(self) -> None:
        """Look for events that others have committed."""
        if not self._watchers:
            return
        newest = await self._runs.last_sequences(list(self._watchers))
        async with self._changed:
            self._known.update({run_id: sequence for run_id, sequence in newest.items() if run_id in self._watchers})
            self._changed.notify_all()

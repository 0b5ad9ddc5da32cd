"""Who waits for which Run. One query a look serves every waiter of this process; own commits wake them at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from services.runs.app.readings import Readings
from services.runs.ports import Runs


@dataclass(slots=True)
class _Watch:
    """One Run that somebody waits for. Its news wake nobody who waits for another."""

    watchers: int = 0
    newest: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, sequence: int) -> None:
        """The Run has an event of this sequence."""
        if sequence > self.newest:
            self.newest = sequence
            self.news.set()
            self.news = asyncio.Event()


class Hub:
    """Wakes those who wait for a Run's next event. A missed wake costs at most one poll, never an event."""

    def __init__(self, runs: Runs, *, hints: bool = True) -> None:
        """Without `hints` own commits wake nobody: the poll alone finds them."""
        self._runs = runs
        self.readings = Readings(runs)
        """How those who were woken read."""
        self._hints = hints
        self._watches: dict[str, _Watch] = {}

    @property
    def watched(self) -> frozenset[str]:
        """The Runs that somebody waits for."""
        return frozenset(self._watches)

    @contextmanager
    def watching(self, run_id: str) -> Iterator[None]:
        """While inside, the Run is part of the poll. Enter before the first read, so that nothing falls between."""
        watch = self._watches.setdefault(run_id, _Watch())
        watch.watchers += 1
        try:
            yield
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                del self._watches[run_id]

    async def wait(self, run_id: str, after: int) -> None:
        """Return once the Run, which the caller is watching, is known to have an event above `after`."""
        watch = self._watches[run_id]
        while watch.newest <= after:
            await watch.news.wait()

    def tell(self, run_id: str, sequence: int) -> None:
        """This process has committed an event."""
        if self._hints and (watch := self._watches.get(run_id)):
            watch.hear(sequence)

    async def poll(self) -> None:
        """Look for events that others have committed."""
        if not self._watches:
            return
        for run_id, sequence in (await self._runs.last_sequences(list(self._watches))).items():
            if watch := self._watches.get(run_id):  # whoever watched it may have left meanwhile
                watch.hear(sequence)

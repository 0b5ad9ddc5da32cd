"""Hints that capacity was freed, for as long as the watcher stays."""

from collections.abc import AsyncGenerator

from libs.kernel.clock import Clock
from services.capacity.app.freed import Freed
from services.capacity.domain.levels import Subject
from services.capacity.ports import CapacityStore, Figure

Room = tuple[float, int, int]


class WatchCapacity:
    """Tells at once what this process freed, and within `poll_s` seconds what others did."""

    def __init__(self, store: CapacityStore, clock: Clock, freed: Freed, poll_s: float) -> None:
        self._store = store
        self._clock = clock
        self._freed = freed
        self._poll_s = poll_s

    async def __call__(self) -> AsyncGenerator[tuple[Subject, ...], None]:
        """Levels that may admit more than before. Says nothing while nothing was freed."""
        with self._freed.inbox() as inbox:
            before = {figure.level.subject: _room(figure) for figure in await self._store.figures()}
            while True:
                told = await inbox.take(self._poll_s, self._clock)
                if not told:
                    now = {figure.level.subject: _room(figure) for figure in await self._store.figures()}
                    told = frozenset(subject for subject in now if _grew(before.get(subject), now[subject]))
                    before = now
                if told:
                    yield tuple(sorted(told))


def _room(figure: Figure) -> Room:
    effective = figure.level.effective
    free = float("inf") if effective is None else float(effective - figure.usage.in_use)
    return free, -figure.usage.requests, -figure.usage.tokens


def _grew(before: Room | None, now: Room) -> bool:
    return before is None or any(later > earlier for earlier, later in zip(before, now, strict=True))

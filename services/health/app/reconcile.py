"""Moves circuits whose cooldown is over to probing (HLT-1). The tick does it, and so does the first asker."""

from collections.abc import Collection

from libs.kernel.clock import Clock
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.domain.breaker import step
from services.health.domain.events import Event
from services.health.domain.observations import CooldownOver
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore


class Reconcile:
    """Looks at the clock on behalf of every open circuit. Any number of processes may do it at once."""

    def __init__(self, store: HealthStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes

    async def __call__(self) -> None:
        """One tick: everything that is due."""
        due = await self._store.cooled(self._clock.now())
        if due:
            await self.probe(due)

    async def probe(self, due: Collection[Subject]) -> None:
        """Move these, as far as they are still open and due once their rows are locked."""
        written: list[tuple[Subject, tuple[Event, ...]]] = []
        async with self._store.unit() as unit:
            for record in (await unit.lock(due)).values():
                breaker, events = step(record.breaker, CooldownOver(), self._clock.now())
                if events:
                    await unit.put(record.advanced(breaker, events), events)
                    written.append((record.subject, events))
        for subject, events in written:
            meters.moved(subject, events)
        self._changes.ring()

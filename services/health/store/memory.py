"""The memory twin of the store: one unit at a time, undone as a whole when it raises."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from libs.faults.fault import Fault
from services.health.domain.events import Event
from services.health.domain.observations import Outcome
from services.health.domain.states import State
from services.health.domain.subjects import Subject
from services.health.ports import HealthUnit, OutcomeUnit, Record, Recorded


@dataclass(slots=True)
class _Contents:
    records: dict[Subject, Record] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    history: list[Recorded] = field(default_factory=list)
    catalog_revision: int = 0


class MemoryHealthStore:
    """ports.HealthStore in this process. Nothing outlives it."""

    def __init__(self) -> None:
        self._contents = _Contents()
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[HealthUnit]:
        """A unit of work. Units wait for each other."""
        async with self._lock:
            unit = _Unit(self._contents)
            yield unit
            unit.commit()

    def optimistic(self) -> AbstractAsyncContextManager[OutcomeUnit]:
        """Nothing is cheaper than a unit here."""
        return self.unit()

    async def records(self) -> list[Record]:
        """All records."""
        return [self._contents.records[subject] for subject in sorted(self._contents.records)]

    async def cooled(self, now: datetime) -> list[Subject]:
        """Open circuits whose cooldown is over."""
        due = []
        for record in await self.records():
            until = record.breaker.health.cooldown_until
            if record.breaker.health.state is State.CIRCUIT_OPEN and until is not None and until <= now:
                due.append(record.subject)
        return due

    async def events(self, subject: Subject | None, after: int, limit: int) -> list[Recorded]:
        """History, oldest first."""
        newer = self._contents.history[after:]  # the n-th entry has position n
        return [stored for stored in newer if subject is None or stored.subject == subject][:limit]

    async def forget_outcomes(self, before: datetime) -> int:
        """Delete old outcomes."""
        outcomes = self._contents.outcomes
        old = [key for key, outcome in outcomes.items() if outcome.observed_at < before]
        for key in old:
            del outcomes[key]
        return len(old)

    async def close(self) -> None:
        """There is nothing to let go of."""


class _Unit:
    """Collects what is to be stored; `commit` stores it at once."""

    def __init__(self, contents: _Contents) -> None:
        self._contents = contents
        self._records: dict[Subject, Record] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._history: list[tuple[Subject, int, Event]] = []
        self._catalog_revision: int | None = None

    async def claim(self, outcomes: Sequence[Outcome]) -> frozenset[str]:
        known = self._contents.outcomes.keys() | self._outcomes.keys()
        new = {outcome.attempt_id: outcome for outcome in outcomes if outcome.attempt_id not in known}
        self._outcomes |= new
        return frozenset(new)

    async def lock(self, subjects: Collection[Subject] | None) -> dict[Subject, Record]:
        present = self._contents.records | self._records
        return {subject: present[subject] for subject in sorted(present) if subjects is None or subject in subjects}

    async def add(self, record: Record, events: Sequence[Event]) -> None:
        if record.subject in self._contents.records or record.subject in self._records:
            raise Fault.of("conflict", f"{record.subject} is stored already")
        self._write(record, events)

    async def put(self, record: Record, events: Sequence[Event]) -> None:
        stored = self._records.get(record.subject) or self._contents.records.get(record.subject)
        if stored is None or stored.sequence != record.sequence - len(events):
            raise Fault.of("revision_conflict", f"{record.subject} has changed in between")
        self._write(record, events)

    async def lock_catalog_revision(self) -> int:
        return self._contents.catalog_revision

    async def set_catalog_revision(self, revision: int) -> None:
        self._catalog_revision = revision

    def _write(self, record: Record, events: Sequence[Event]) -> None:
        self._records[record.subject] = record
        first = record.sequence - len(events) + 1
        self._history += [(record.subject, first + index, event) for index, event in enumerate(events)]

    def commit(self) -> None:
        """Store everything."""
        self._contents.records.update(self._records)
        self._contents.outcomes.update(self._outcomes)
        for subject, sequence, event in self._history:
            self._contents.history.append(Recorded(len(self._contents.history) + 1, subject, sequence, event))
        if self._catalog_revision is not None:
            self._contents.catalog_revision = self._catalog_revision

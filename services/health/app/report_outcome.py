"""Attempts have ended: their Channels and Supplies observe it, those of one moment in one unit of work."""

from collections.abc import Awaitable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime

from msgspec import Struct

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.store.gathering import Gathering
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.domain.breaker import step
from services.health.domain.events import Event
from services.health.domain.observations import Observation, Outcome, dealt
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, OutcomeUnit, Outdated, Record, Recorded

EVERYBODYS = frozenset({"governance_backend_down", "revision_conflict"})
"""Faults that befell a whole group; any other is one outcome's own."""


Observer = tuple[Subject, Observation | None]


class Reported(Struct, frozen=True):
    """`recorded` is False where the Attempt's outcome was known already; then nothing happened."""

    recorded: bool
    events: tuple[Recorded, ...]


class ReportOutcome:
    """Idempotent by Attempt; both machines step in one unit of work, the Channel first.

    A busy Channel's row is the hottest there is, so who reports meanwhile goes together in the next unit: each outcome
    steps the machines on from where the one before it has left them.
    """

    def __init__(self, store: HealthStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes
        self._group: Gathering[Outcome, Reported] = Gathering(
            self._report, lambda outcome: outcome.attempt_id, shared=_is_everybodys
        )

    def __call__(self, outcome: Outcome) -> Awaitable[Reported]:
        """Record and step. Fault `source_not_configured` for a Channel or Supply that was never declared."""
        return self._group.begin(outcome)

    async def _report(self, outcomes: Sequence[Outcome]) -> Sequence[Reported]:
        try:
            return await self._stepped(outcomes, self._store.optimistic())
        except Outdated:
            return await self._stepped(outcomes, self._store.unit())

    async def _stepped(
        self, outcomes: Sequence[Outcome], work: AbstractAsyncContextManager[OutcomeUnit]
    ) -> Sequence[Reported]:
        async with work as unit:
            new = await unit.claim(outcomes)
            fresh = [(outcome.attempt_id, _observers(outcome)) for outcome in outcomes if outcome.attempt_id in new]
            steps = _Steps(await unit.lock({subject for _, observers in fresh for subject, _ in observers}))
            told = {attempt: steps.take(observers, self._clock.now()) for attempt, observers in fresh}
            for record, events in steps.changed():
                await unit.put(record, events)
        self._tell([observer for _, observers in fresh for observer in observers], told.values())
        return [Reported(outcome.attempt_id in new, tuple(told.get(outcome.attempt_id, ()))) for outcome in outcomes]

    def _tell(self, observed: Sequence[Observer], told: Iterable[Sequence[Recorded]]) -> None:
        meters.observed(observed)
        recorded = [stored for each in told for stored in each]
        for stored in recorded:
            meters.moved(stored.subject, (stored.event,))
        if recorded:
            self._changes.ring()


class _Steps:
    """The machines of a unit as they go on, and the events of each, in order."""

    def __init__(self, records: dict[Subject, Record]) -> None:
        self._records = records
        self._breakers = {subject: record.breaker for subject, record in records.items()}
        self._events: dict[Subject, list[Event]] = {}

    def changed(self) -> list[tuple[Record, Sequence[Event]]]:
        """What is to be stored, in the order of subjects, and the events that led there."""
        return [
            (self._records[subject].advanced(self._breakers[subject], self._events[subject]), self._events[subject])
            for subject in sorted(self._events)
        ]

    def take(self, observers: Sequence[Observer], now: datetime) -> list[Recorded]:
        """Step both machines."""
        for subject, _ in observers:
            if subject not in self._records:
                raise Fault.of("source_not_configured", f"{subject} was never declared to health")
        recorded: list[Recorded] = []
        for subject, observation in observers:
            if observation is not None:
                recorded += self._step(subject, observation, now)
        return recorded

    def _step(self, subject: Subject, observation: Observation, now: datetime) -> Sequence[Recorded]:
        before = self._breakers[subject]
        breaker, events = step(before, observation, now)
        if breaker is before and not events:
            return ()
        self._breakers[subject] = breaker
        known = self._events.setdefault(subject, [])
        first = self._records[subject].sequence + len(known) + 1
        known += events
        return [Recorded(0, subject, first + index, event) for index, event in enumerate(events)]


def _observers(outcome: Outcome) -> tuple[Observer, Observer]:
    """The Channel first."""
    of_channel, of_supply = dealt(outcome)
    return (Subject.channel(outcome.channel_id), of_channel), (Subject.supply(outcome.supply_id), of_supply)


def _is_everybodys(error: Exception) -> bool:
    return isinstance(error, Fault) and error.code in EVERYBODYS

"""Attempts have ended: their Channels and Supplies observe it, those of one moment in one unit of work."""

from collections.abc import Sequence
from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from libs.store.gathering import Gathering
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.domain.breaker import step
from services.health.domain.events import Event
from services.health.domain.observations import Observation, Outcome, dealt
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, Record, Recorded

EVERYBODYS = frozenset({"governance_backend_down", "revision_conflict"})
"""Faults that befell a whole group; any other is one outcome's own."""


@dataclass(frozen=True, slots=True)
class Reported:
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

    async def __call__(self, outcome: Outcome) -> Reported:
        """Record and step. Fault `source_not_configured` for a Channel or Supply that was never declared."""
        return await self._group.ask(outcome)

    async def _report(self, outcomes: Sequence[Outcome]) -> Sequence[Reported]:
        async with self._store.unit() as unit:
            new = await unit.claim(outcomes)
            fresh = [outcome for outcome in outcomes if outcome.attempt_id in new]
            steps = _Steps(await unit.lock({subject for outcome in fresh for subject, _ in _observers(outcome)}))
            told = {outcome.attempt_id: steps.take(outcome, self._clock) for outcome in fresh}
            for subject in sorted(steps.changed):
                await unit.put(steps.records[subject], steps.changed[subject])
        self._tell(fresh, [item for recorded in told.values() for item in recorded])
        return [Reported(outcome.attempt_id in new, tuple(told.get(outcome.attempt_id, ()))) for outcome in outcomes]

    def _tell(self, fresh: Sequence[Outcome], recorded: Sequence[Recorded]) -> None:
        for outcome in fresh:
            for subject, observation in _observers(outcome):
                if observation is not None:
                    meters.observed(subject, observation)
        for stored in recorded:
            meters.moved(stored.subject, (stored.event,))
        if recorded:
            self._changes.ring()


class _Steps:
    """The machines of a unit as they go on, and the events of each, in order."""

    def __init__(self, records: dict[Subject, Record]) -> None:
        self.records = records
        self.changed: dict[Subject, list[Event]] = {}

    def take(self, outcome: Outcome, clock: Clock) -> list[Recorded]:
        """Step both machines."""
        observers = _observers(outcome)
        for subject, _ in observers:
            if subject not in self.records:
                raise Fault.of("source_not_configured", f"{subject} was never declared to health")
        return [stored for observer in observers for stored in self._step(*observer, clock)]

    def _step(self, subject: Subject, observation: Observation | None, clock: Clock) -> list[Recorded]:
        if observation is None:
            return []
        record = self.records[subject]
        breaker, events = step(record.breaker, observation, clock.now())
        if breaker != record.breaker or events:
            self.records[subject] = record.advanced(breaker, events)
            self.changed.setdefault(subject, []).extend(events)
        first = record.sequence + 1
        return [Recorded(0, subject, first + index, event) for index, event in enumerate(events)]


def _observers(outcome: Outcome) -> tuple[tuple[Subject, Observation | None], ...]:
    """The Channel first."""
    of_channel, of_supply = dealt(outcome)
    return (Subject.channel(outcome.channel_id), of_channel), (Subject.supply(outcome.supply_id), of_supply)


def _is_everybodys(error: Exception) -> bool:
    return isinstance(error, Fault) and error.code in EVERYBODYS

"""One Attempt has ended: its Channel and its Supply observe it."""

from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.domain.breaker import step
from services.health.domain.observations import Observation, Outcome, dealt
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, HealthUnit, Record, Recorded


@dataclass(frozen=True, slots=True)
class Reported:
    """`recorded` is False where the Attempt's outcome was known already; then nothing happened."""

    recorded: bool
    events: tuple[Recorded, ...]


class ReportOutcome:
    """Idempotent by Attempt; both machines step in one unit of work, the Channel first."""

    def __init__(self, store: HealthStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes

    async def __call__(self, outcome: Outcome) -> Reported:
        """Record and step. Fault `source_not_configured` for a Channel or Supply that was never declared."""
        channel, supply = Subject.channel(outcome.channel_id), Subject.supply(outcome.supply_id)
        of_channel, of_supply = dealt(outcome)
        recorded: list[Recorded] = []
        async with self._store.unit() as unit:
            if not await unit.claim(outcome):
                return Reported(False, ())
            records = await unit.lock((channel, supply))
            for subject in (channel, supply):
                if subject not in records:
                    raise Fault.of("source_not_configured", f"{subject} was never declared to health")
            recorded += await self._observe(unit, records[channel], of_channel)
            recorded += await self._observe(unit, records[supply], of_supply)
        for subject, observation in ((channel, of_channel), (supply, of_supply)):
            if observation is not None:
                meters.observed(subject, observation)
        for stored in recorded:
            meters.moved(stored.subject, (stored.event,))
        if recorded:
            self._changes.ring()
        return Reported(True, tuple(recorded))

    async def _observe(self, unit: HealthUnit, record: Record, observation: Observation | None) -> list[Recorded]:
        if observation is None:
            return []
        breaker, events = step(record.breaker, observation, self._clock.now())
        if breaker != record.breaker or events:
            await unit.put(record.advanced(breaker, events), events)
        first = record.sequence + 1
        return [Recorded(0, record.subject, first + index, event) for index, event in enumerate(events)]

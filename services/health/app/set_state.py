"""An operator's word: enable, disable, open."""

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.app.snapshot import View, viewed
from services.health.domain.breaker import refuses, step
from services.health.domain.observations import Command
from services.health.domain.states import Signal, State
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore

SIGNALS = {
    State.HEALTHY: Signal.SWITCHED_ON,
    State.DISABLED: Signal.SWITCHED_OFF,
    State.CIRCUIT_OPEN: Signal.FORCED_OPEN,
}


class SetState:
    """Saying what holds already changes nothing."""

    def __init__(self, store: HealthStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes

    async def __call__(self, subject: Subject, state: State, reason: str) -> View:
        """The view after it. Faults: `validation_failed`, `not_found`, `conflict` (a disabled subject cannot open)."""
        if state not in SIGNALS:
            raise Fault.invalid(("/state", "must be healthy, disabled or circuit_open"))
        if not reason.strip():
            raise Fault.invalid(("/reason", "is required"))
        now = self._clock.now()
        async with self._store.unit() as unit:
            record = (await unit.lock((subject,))).get(subject)
            if record is None or record.retired:
                raise Fault.of("not_found", f"{subject} does not exist")
            if refuses(record.breaker, SIGNALS[state]) and record.breaker.health.state is not state:
                raise Fault.of("conflict", f"{subject} is {record.breaker.health.state.value}; enable it first")
            breaker, events = step(record.breaker, Command(SIGNALS[state], reason), now)
            if events:
                record = record.advanced(breaker, events)
                await unit.put(record, events)
        meters.moved(subject, events)
        self._changes.ring()
        return viewed(record, now)

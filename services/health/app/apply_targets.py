"""The catalogue says which subjects there are, with which slots and thresholds. Declarative: the absent are retired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.health.app import meters
from services.health.app.changes import Changes
from services.health.domain.breaker import declared, step
from services.health.domain.events import DECLARED, RESIZED, RETIRED, Event
from services.health.domain.observations import Command, Declared, Observation
from services.health.domain.states import Signal
from services.health.domain.subjects import Kind, Subject
from services.health.domain.thresholds import Thresholds
from services.health.ports import HealthStore, HealthUnit, Record


@dataclass(frozen=True, slots=True)
class Target:
    """One subject as the catalogue declares it; `configured` slots, 0 = no gate."""

    subject: Subject
    channel_id: str
    configured: int
    disabled: bool
    thresholds: Thresholds


class ApplyTargets:
    """Told again, it changes nothing; an older revision than the last is ignored."""

    def __init__(self, store: HealthStore, clock: Clock, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._changes = changes

    async def __call__(self, revision: int, targets: Sequence[Target]) -> int:
        """The catalogue revision in force afterwards. Fault `validation_failed` names what cannot be."""
        _check(revision, targets)
        wanted = {target.subject: target for target in targets}
        now = self._clock.now()
        async with self._store.unit() as unit:
            known = await unit.lock_catalog_revision()
            if revision < known:
                return known
            records = await unit.lock(None)
            for subject in sorted(wanted.keys() | records.keys()):
                await self._apply(unit, records.get(subject), wanted.get(subject), now)
            await unit.set_catalog_revision(revision)
            records = await unit.lock(wanted.keys())
        for subject, record in records.items():
            meters.shown(subject, record.breaker.health.state)
        self._changes.ring()
        return revision

    async def _apply(self, unit: HealthUnit, record: Record | None, target: Target | None, now: datetime) -> None:
        if record is None:
            assert target is not None
            wanted = Declared(target.configured, target.thresholds)
            breaker, events = declared(target.subject.kind, wanted, target.disabled, now)
            new = Record(target.subject, target.channel_id, breaker, target.disabled, False, len(events))
            await unit.add(new, events)
            return
        after, written = _changed(record, target, now)
        if after != record:
            await unit.put(after, written)


def _changed(record: Record, target: Target | None, now: datetime) -> tuple[Record, tuple[Event, ...]]:
    """The record once the catalogue's word is done, and the events of it. Only a change of `disabled` switches."""
    observations: list[Observation] = []
    after = record
    if target is None:
        if not record.retired:
            observations = [Declared(record.breaker.configured, record.breaker.thresholds, RETIRED)]
            after = replace(record, retired=True)
    else:
        observations = [Declared(target.configured, target.thresholds, DECLARED if record.retired else RESIZED)]
        if target.disabled != record.disabled:
            signal = Signal.SWITCHED_OFF if target.disabled else Signal.SWITCHED_ON
            observations.append(Command(signal, "catalog"))
        after = replace(record, channel_id=target.channel_id, disabled=target.disabled, retired=False)
    written: list[Event] = []
    for observation in observations:
        breaker, events = step(after.breaker, observation, now)
        after = after.advanced(breaker, events)
        written += events
    return after, tuple(written)


def _check(revision: int, targets: Sequence[Target]) -> None:
    if revision < 1:
        raise Fault.invalid(("/catalog_revision", "must be at least 1"))
    seen: set[Subject] = set()
    for index, target in enumerate(targets):
        at = f"/targets/{index}"
        if target.subject in seen:
            raise Fault.invalid((f"{at}/subject", f"{target.subject} is declared twice"))
        seen.add(target.subject)
        if target.configured < 0:
            raise Fault.invalid((f"{at}/configured_concurrency", "must not be negative"))
        if target.subject.kind is Kind.SUPPLY and Subject.channel(target.channel_id) not in {
            other.subject for other in targets
        }:
            raise Fault.invalid((f"{at}/channel_id", f"no channel '{target.channel_id}' is declared"))

"""The state of every subject at one moment: what selection freezes."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from libs.kernel.clock import Clock
from services.health.app.reconcile import Reconcile
from services.health.domain.breaker import Breaker
from services.health.domain.states import State
from services.health.domain.statistics import Rates, rates
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, Record


@dataclass(frozen=True, slots=True)
class View:
    """One subject as others see it."""

    subject: Subject
    breaker: Breaker
    rates: Rates


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Views in the order of their subjects, without retired ones."""

    views: tuple[View, ...]
    taken_at: datetime


def viewed(record: Record, now: datetime) -> View:
    """The view of a record."""
    breaker = record.breaker
    return View(record.subject, breaker, rates(breaker.tally.window, now, breaker.thresholds.window_s))


class GetSnapshot:
    """Reads without locks; where a cooldown is over, the first asker moves it to probing before answering."""

    def __init__(self, store: HealthStore, clock: Clock, reconcile: Reconcile) -> None:
        self._store = store
        self._clock = clock
        self._reconcile = reconcile

    async def __call__(self, subjects: Collection[Subject] = ()) -> Snapshot:
        """Of these subjects as far as they are known, or of all."""
        records = await self._store.records()
        now = self._clock.now()
        due = [record.subject for record in records if _due(record.breaker, now)]
        if due:
            await self._reconcile.probe(due)
            records = await self._store.records()
        wanted = frozenset(subjects)
        views = (viewed(record, now) for record in records if not record.retired)
        return Snapshot(tuple(view for view in views if not wanted or view.subject in wanted), now)


def _due(breaker: Breaker, now: datetime) -> bool:
    until = breaker.health.cooldown_until
    return breaker.health.state is State.CIRCUIT_OPEN and until is not None and until <= now

"""The running proof that the history folds to the state (HLT-12)."""

import logging

from services.health.app import meters
from services.health.domain.events import Health, applied
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, Record

BATCH = 500
log = logging.getLogger(__name__)


class CheckHistory:
    """Folds what is new since the last check and compares. A breach is logged as an error and kept in `breaches`."""

    def __init__(self, store: HealthStore) -> None:
        self._store = store
        self._folded: dict[Subject, tuple[int, int, Health | None]] = {}
        self.breaches: dict[Subject, str] = {}

    async def __call__(self) -> None:
        """Check every subject once."""
        for record in await self._store.records():
            meters.shown(record.subject, record.breaker.health.state)
            breach = await self._breach(record)
            if breach and self.breaches.get(record.subject) != breach:
                log.error("invariant violated: the history of %s does not give its state: %s", record.subject, breach)
            if breach:
                self.breaches[record.subject] = breach
            else:
                self.breaches.pop(record.subject, None)

    async def _breach(self, record: Record) -> str:
        """What is wrong with a subject's history, empty if it holds."""
        position, sequence, health = self._folded.get(record.subject, (0, 0, None))
        while sequence < record.sequence:
            batch = await self._store.events(record.subject, position, BATCH)
            if not batch:
                return f"{record.sequence} events were written, {sequence} are there"
            for stored in batch:
                if stored.sequence > record.sequence:
                    break  # newer than the record that was read
                if stored.sequence != sequence + 1:
                    return f"event {stored.sequence} follows {sequence}"
                try:
                    health = applied(health, stored.event)
                except ValueError as error:
                    return str(error)
                position, sequence = stored.position, stored.sequence
        self._folded[record.subject] = (position, sequence, health)
        if health != record.breaker.health:
            return f"folded to {health}, stored is {record.breaker.health}"
        return ""

"""Why a subject was in the state that it was in: its history, folded up to a moment (HLT-12)."""

from collections import deque
from dataclasses import dataclass

from libs.faults.fault import Fault
from services.health.domain.events import Health, Moment, Past
from services.health.domain.subjects import Subject
from services.health.ports import HealthStore, Recorded

BATCH = 1000
TOLD = 50


@dataclass(frozen=True, slots=True)
class Explained:
    """The state then, the event with which it began, and the newest of what was observed from there to the moment."""

    subject: Subject
    health: Health
    cause: Recorded
    events: tuple[Recorded, ...]


class ExplainState:
    """Reads the history of one subject from its beginning: state is never guessed from a later one."""

    def __init__(self, store: HealthStore) -> None:
        self._store = store

    async def __call__(self, subject: Subject, moment: Moment) -> Explained:
        """Fault `not_found` for a subject that was never declared, or not yet at that moment."""
        past, cause = Past(moment), None
        since: deque[Recorded] = deque(maxlen=TOLD)
        position = 0
        while not past.ended and (batch := await self._store.events(subject, position, BATCH)):
            for stored in batch:
                before = past.cause
                if past.take(stored.event):
                    if past.cause is not before:
                        cause = stored
                        since.clear()
                    since.append(stored)
            position = batch[-1].position
        if past.health is None or cause is None:
            raise Fault.of("not_found", f"{subject} was not declared at that moment")
        return Explained(subject, past.health, cause, tuple(since))

"""The history of a subject. Folding it gives the state, always (HLT-12).

Laws of this file:
- every change of a Health is one Event, and every Event that changes one raises its revision by 1;
- `outcome` and `stale_ignored` are remarks: they are kept for a reader and change nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from services.health.domain.states import State

DECLARED = "declared"
RESIZED = "resized"
RETIRED = "retired"
OUTCOME = "outcome"
STALE_IGNORED = "stale_ignored"
REMARKS = frozenset({OUTCOME, STALE_IGNORED})


@dataclass(frozen=True, slots=True)
class Health:
    """The durable part of a breaker.

    `recovery_successes` counts consecutive successes since probing last began. `cooldown_until` is set while the
    circuit is open. `reason` is a code or a trigger's name.
    """

    state: State
    epoch: int
    revision: int
    since: datetime
    cooldown_until: datetime | None
    recovery_successes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Event:
    """One immutable fact. `before` is None for the first of a subject; the figures are those after it."""

    kind: str
    before: State | None
    after: State
    epoch: int
    revision: int
    recovery_successes: int
    reason: str
    attempt_id: str
    at: datetime
    cooldown_until: datetime | None = None


def enters(event: Event) -> bool:
    """True when a state begins with this event, also when a circuit opens anew."""
    if event.kind in (DECLARED, RESIZED, RETIRED):
        return event.before is None
    return event.after != event.before or event.after is State.CIRCUIT_OPEN


def applied(health: Health | None, event: Event) -> Health | None:
    """The state after one more event. ValueError where the event cannot follow: history has a hole or was edited."""
    if event.kind in REMARKS:
        return health
    revision = 0 if health is None else health.revision
    state = None if health is None else health.state
    if event.revision != revision + 1 or event.before != state:
        raise ValueError(f"event {event.kind} of revision {event.revision} cannot follow {state} at {revision}")
    return Health(
        state=event.after,
        epoch=event.epoch,
        revision=event.revision,
        since=event.at if health is None or enters(event) else health.since,
        cooldown_until=event.cooldown_until,
        recovery_successes=event.recovery_successes,
        reason=event.reason,
    )


def fold(events: Iterable[Event]) -> Health | None:
    """The state that a history leads to; None for an empty one."""
    health: Health | None = None
    for event in events:
        health = applied(health, event)
    return health


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a subject's past: a time, or the revision that a decision saw. Both None: now."""

    at: datetime | None = None
    revision: int | None = None

    def precedes(self, event: Event) -> bool:
        """True when the event came after the moment. A remark changes nothing, so a revision ends before a change."""
        if self.revision is not None:
            return event.revision > self.revision and event.kind not in REMARKS
        return self.at is not None and event.at > self.at


class Past:
    """A history read up to a moment, event by event: the state then, and the event with which it began."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self.health: Health | None = None
        self.cause: Event | None = None
        self.ended = False

    def take(self, event: Event) -> bool:
        """Take the next event of the history; True if it belongs to the moment. After the first change that lies
        behind the moment nothing does. ValueError as `applied`."""
        if self.ended or self._moment.precedes(event):
            self.ended = self.ended or event.kind not in REMARKS
            return False
        self.health = applied(self.health, event)
        if event.kind not in REMARKS and (self.cause is None or enters(event)):
            self.cause = event
        return True

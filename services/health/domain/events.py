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

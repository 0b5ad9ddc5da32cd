"""The public JSON shapes of what was: a subject's health in the past, and why Supplies were refused for it."""

from datetime import datetime

from msgspec import Struct


class HealthEvent(Struct, frozen=True):
    """One immutable fact of a subject's history; the figures are those after it."""

    sequence: int
    kind: str
    from_state: str | None
    to_state: str
    epoch: int
    recovery_successes: int
    reason: str | None
    attempt_id: str | None
    observed_at: datetime | None


class PastHealth(Struct, frozen=True):
    """The state of a Channel or Supply at a moment, the event with which that state began, and what was observed from
    there up to the moment."""

    id: str
    sort: str
    state: str
    reason: str | None
    since: datetime | None
    cooldown_until: datetime | None
    recovery_successes: int
    epoch: int
    revision: int
    cause: HealthEvent
    events: list[HealthEvent]


class HealthCause(Struct, frozen=True):
    """The event behind a state that a decision saw."""

    sequence: int
    kind: str
    reason: str | None
    attempt_id: str | None
    observed_at: datetime | None
    cooldown_until: datetime | None


class HealthRefusal(Struct, frozen=True):
    """A Supply that a round dropped for health: its own, or its Channel's. `cause` is null where it is not known."""

    round: int
    supply: str
    sort: str
    id: str
    state: str
    revision: int
    decided_at: datetime | None
    cause: HealthCause | None


class Explanation(Struct, frozen=True):
    """Why a Task went where it went: four steps, the story in sentences, and the refusals for health."""

    task_id: str
    steps: list[str]
    story: list[str]
    refusals: list[HealthRefusal]

"""What slots and windows are kept for, and how many there are."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from msgspec import Struct

from services.capacity.domain.pacing import UNPACED, Pace


class Kind(IntEnum):
    """The sort of a level. The numbers are the order in which levels are locked and judged."""

    GLOBAL = 1
    CHANNEL = 2
    SUPPLY = 3


class Subject(Struct, frozen=True, order=True):
    """One level: all work of a kind ("video"), a Channel ("ark-main"), a Supply ("ark-main/seedance")."""

    kind: Kind
    id: str

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} '{self.id}'"


class HealthLimit(Struct, frozen=True):
    """What health allows a level: `limit` slots, None = no limit by health.

    `epoch` rises when the circuit opens, `revision` with every change; of two the higher revision is true.
    """

    epoch: int
    revision: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Level:
    """One level as declared, 0 = no gate, and what health was last heard to allow it (None = never heard).

    `channel_id` is the Channel of a Supply, else empty. `pace` is what the provider's answers taught of a Supply.
    """

    subject: Subject
    channel_id: str = ""
    concurrency: int = 0
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    health: HealthLimit | None = None
    pace: Pace = UNPACED

    @property
    def epoch(self) -> int:
        """The present health epoch, 0 where health was never heard."""
        return self.health.epoch if self.health else 0

    @property
    def effective(self) -> int | None:
        """min(configured, what health allows, adaptive limit); None where none limits (CAP-4)."""
        limits = [self.concurrency] if self.concurrency else []
        if self.health is not None and self.health.limit is not None:
            limits.append(self.health.limit)
        if self.pace.slots is not None:
            limits.append(self.pace.slots)
        return min(limits) if limits else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What is used on a level at one moment.

    `in_use` counts live leases, `in_use_current_epoch` those taken in the level's present health epoch (CAP-4a).
    Requests and tokens are those admitted within the last minute, corrected by what was really used (CAP-6);
    `oldest_request` and `oldest_overuse` are the times of the first of them that leave it, None where there is none.
    """

    in_use: int = 0
    in_use_current_epoch: int = 0
    requests: int = 0
    tokens: int = 0
    oldest_request: datetime | None = None
    oldest_overuse: datetime | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What a window remembers of a lease: its reservation, or (with `requests` 0) what it used beyond that."""

    at: datetime
    tokens: int
    requests: int = 1


def newer(known: HealthLimit | None, told: HealthLimit | None) -> HealthLimit | None:
    """The one to believe: the higher revision, the known one where they are equal."""
    if known is None or (told is not None and told.revision > known.revision):
        return told
    return known

"""The lease: slots of a Channel and a Supply together, held by somebody until a time.

Structs, where other values are dataclasses: every call makes some, and a frozen dataclass takes far longer to make.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from services.capacity.domain.levels import Admission, HealthLimit, Kind, Level, Subject


class Request(Struct, frozen=True):
    """What is asked for. `tokens` are those to reserve in the windows; `ttl` runs from the reservation."""

    lease_id: str
    holder: str
    kind: str
    channel_id: str
    supply_id: str
    channel_health: HealthLimit
    supply_health: HealthLimit
    tokens: int
    ttl: timedelta

    @property
    def subjects(self) -> tuple[Subject, Subject, Subject]:
        """The levels it needs, in the order of locks. The level of the kind need not be declared."""
        return (
            Subject(Kind.GLOBAL, self.kind),
            Subject(Kind.CHANNEL, self.channel_id),
            Subject(Kind.SUPPLY, self.supply_id),
        )

    def health_of(self, subject: Subject) -> HealthLimit | None:
        """The asker's view of a level's health; a whole kind has none."""
        return {Kind.CHANNEL: self.channel_health, Kind.SUPPLY: self.supply_health}.get(subject.kind)


class Lease(Struct, frozen=True):
    """A lease as stored. `ended_at` is None while it holds, whether or not anybody noticed that it lapsed.

    `released` tells how it ended: given back, or lapsed. `tokens` were reserved, `used_tokens` reported afterwards
    (None = not told).
    """

    id: str
    holder: str
    kind: str
    channel_id: str
    supply_id: str
    channel_epoch: int
    supply_epoch: int
    tokens: int
    reserved_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    released: bool = False
    used_tokens: int | None = None

    @property
    def subjects(self) -> tuple[Subject, Subject, Subject]:
        """The levels on which it uses a slot."""
        return (
            Subject(Kind.GLOBAL, self.kind),
            Subject(Kind.CHANNEL, self.channel_id),
            Subject(Kind.SUPPLY, self.supply_id),
        )

    def live(self, now: datetime) -> bool:
        """True while it counts: neither given back nor lapsed."""
        return self.ended_at is None and now < self.expires_at

    def on(self, level: Level) -> bool:
        """True when it uses a slot of that level."""
        mine = {Kind.GLOBAL: self.kind, Kind.CHANNEL: self.channel_id, Kind.SUPPLY: self.supply_id}
        return mine[level.subject.kind] == level.subject.id

    def admissions(self) -> tuple[Admission, ...]:
        """What it weighs in the windows (CAP-6).

        Less than was reserved corrects the reservation; more counts from the time at which it became known, so that
        it is carried into the windows that follow, however long the call took.
        """
        if self.used_tokens is None:
            return (Admission(self.reserved_at, self.tokens),)
        reserved = Admission(self.reserved_at, min(self.tokens, self.used_tokens))
        if self.used_tokens <= self.tokens or self.ended_at is None:
            return (reserved,)
        return (reserved, Admission(self.ended_at, self.used_tokens - self.tokens, requests=0))

    def epoch_on(self, level: Level) -> int:
        """The health epoch of that level when the lease was taken."""
        return {Kind.CHANNEL: self.channel_epoch, Kind.SUPPLY: self.supply_epoch}.get(level.subject.kind, 0)


def lease_of(request: Request, now: datetime) -> Lease:
    """The lease that an admitted request becomes."""
    return Lease(
        request.lease_id,
        request.holder,
        request.kind,
        request.channel_id,
        request.supply_id,
        request.channel_health.epoch,
        request.supply_health.epoch,
        request.tokens,
        reserved_at=now,
        expires_at=now + request.ttl,
    )

"""Leases counted in groups, as a backend that cannot hand over every lease counts them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from services.capacity.domain.levels import Kind, Level, Usage


@dataclass(frozen=True, slots=True)
class Count:
    """Leases that agree in kind, Channel, Supply and both health epochs.

    `live` of them hold now; `requests` were admitted within the last minute; `tokens` weigh in its windows; the oldest
    of either are told by their times.
    """

    kind: str
    channel_id: str
    supply_id: str
    channel_epoch: int
    supply_epoch: int
    live: int
    requests: int
    tokens: int
    oldest_request: datetime | None = None
    oldest_overuse: datetime | None = None

    def on(self, level: Level) -> bool:
        """True when these leases use slots of that level."""
        mine = {Kind.GLOBAL: self.kind, Kind.CHANNEL: self.channel_id, Kind.SUPPLY: self.supply_id}
        return mine[level.subject.kind] == level.subject.id

    def epoch_on(self, level: Level) -> int:
        """The health epoch of that level when these leases were taken."""
        return {Kind.CHANNEL: self.channel_epoch, Kind.SUPPLY: self.supply_epoch}.get(level.subject.kind, 0)


def counted(level: Level, counts: Iterable[Count]) -> Usage:
    """The usage of a level; the same figures as `ledger.usage_of` gives for the leases themselves."""
    mine = [count for count in counts if count.on(level)]
    return Usage(
        in_use=sum(count.live for count in mine),
        in_use_current_epoch=sum(count.live for count in mine if count.epoch_on(level) == level.epoch),
        requests=sum(count.requests for count in mine),
        tokens=sum(count.tokens for count in mine),
        oldest_request=_oldest(count.oldest_request for count in mine),
        oldest_overuse=_oldest(count.oldest_overuse for count in mine),
    )


def _oldest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)

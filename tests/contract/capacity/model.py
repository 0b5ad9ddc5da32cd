"""The executable model of capacity: one list of leases, every answer straight from the domain.

Deliberately naive, and checks after every step what must hold whatever the ledger says.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from services.capacity.domain import holding, ledger, pacing
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import HealthLimit, Level, Subject, Usage, newer
from services.capacity.domain.pacing import SILENT, UNPACED, Feedback
from services.capacity.ports import Figure, Renewal

MINUTE = timedelta(seconds=60)
KEPT = timedelta(seconds=120)


@dataclass
class Model:
    """What a CapacityStore does, in plain steps."""

    now: datetime
    levels: dict[Subject, Level] = field(default_factory=dict)
    retired: set[Subject] = field(default_factory=set)
    leases: list[Lease] = field(default_factory=list)
    revision: int = 0

    def declared(self) -> list[Level]:
        """Levels in force."""
        return [self.levels[subject] for subject in sorted(self.levels) if subject not in self.retired]

    def reserve(self, request: Request) -> Lease | Refusal:
        """As the port says."""
        for lease in self.leases:
            if lease.id == request.lease_id:
                return holding.repeated(lease, request, self.now)
        mine = [level for level in self.declared() if level.subject in request.subjects]
        ledger.checked(mine, request)
        heard = [ledger.heard(level, request) for level in mine]
        self.levels.update({level.subject: level for level in heard})
        refusal = ledger.decide(heard, self.leases, request, self.now)
        if refusal is not None:
            assert refusal.retry_at is None or refusal.retry_at > self.now
            return refusal
        lease = lease_of(request, self.now)
        self.leases.append(lease)
        self._check(heard, request)
        return lease

    def _check(self, levels: list[Level], request: Request) -> None:
        """After an admission every gate of every level holds, counted by hand."""
        for level in levels:
            on = [lease for lease in self.leases if level.subject in lease.subjects]
            live = [lease for lease in on if lease.ended_at is None and lease.expires_at > self.now]
            requests, tokens = self._weight(on)
            assert not level.concurrency or len(live) <= level.concurrency
            assert level.pace.limit is None or len(live) * 1000 <= level.pace.limit
            assert level.pace.frozen_until is None or level.pace.frozen_until <= self.now
            assert not level.requests_per_minute or requests <= level.requests_per_minute
            assert not level.tokens_per_minute or tokens <= level.tokens_per_minute
            if level.health is not None and level.health.limit is not None:
                present = [lease for lease in live if lease.epoch_on(level) == level.health.epoch]
                assert len(present) <= level.health.limit
            shown = request.health_of(level.subject)
            assert shown is None or (level.health is not None and shown.revision == level.health.revision)

    def _weight(self, leases: list[Lease]) -> tuple[int, int]:
        """Requests and tokens of the last minute: what was reserved in it, and over-use that became known in it."""
        requests = tokens = 0
        for lease in leases:
            used = lease.tokens if lease.used_tokens is None else lease.used_tokens
            if lease.reserved_at > self.now - MINUTE:
                requests += 1
                tokens += min(lease.tokens, used)
            if lease.ended_at is not None and lease.ended_at > self.now - MINUTE:
                tokens += max(used - lease.tokens, 0)
        return requests, tokens

    def _recent(self, leases: list[Lease]) -> list[Lease]:
        return [lease for lease in leases if lease.reserved_at > self.now - MINUTE]

    def _overused(self, lease: Lease) -> bool:
        used = lease.tokens if lease.used_tokens is None else lease.used_tokens
        return lease.ended_at is not None and lease.ended_at > self.now - MINUTE and used > lease.tokens

    def renew(self, holder: str, lease_ids: tuple[str, ...], ttl: timedelta) -> Renewal:
        """As the port says."""
        done = []
        for index, lease in enumerate(self.leases):
            if lease.id in lease_ids:
                after = holding.renewed(lease, holder, ttl, self.now)
                if after is not None:
                    self.leases[index] = after
                    done.append(lease.id)
        renewed = tuple(lease_id for lease_id in lease_ids if lease_id in done)
        return Renewal(renewed, tuple(lease_id for lease_id in lease_ids if lease_id not in done))

    def release(self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT) -> Lease | None:
        """As the port says."""
        for index, lease in enumerate(self.leases):
            if lease.id == lease_id:
                after = holding.released(lease, holder, used_tokens, self.now)
                if after is not None:
                    self._learn(lease, feedback)
                self.leases[index] = after or lease
                return after
        return None

    def _learn(self, lease: Lease, feedback: Feedback) -> None:
        for level in self.declared():
            if level.subject == lease.subjects[2]:
                in_use = sum(other.live(self.now) for other in self.leases if other.supply_id == lease.supply_id)
                pace = pacing.told(level.pace, feedback, lease.reserved_at, self.now, in_use, level.concurrency)
                self.levels[level.subject] = replace(level, pace=pace)

    def apply_levels(self, revision: int, levels: list[Level]) -> int:
        """As the port says."""
        if revision >= self.revision:
            self.revision = revision
            for level in levels:
                known = self.levels.get(level.subject)
                self.levels[level.subject] = replace(
                    level, health=known.health if known else None, pace=known.pace if known else UNPACED
                )
            self.retired = set(self.levels) - {level.subject for level in levels}
        return self.revision

    def hear(self, health: dict[Subject, HealthLimit]) -> None:
        """As the port says."""
        for subject, told in health.items():
            if subject in self.levels and subject not in self.retired:
                level = self.levels[subject]
                self.levels[subject] = replace(level, health=newer(level.health, told))

    def sweep(self) -> None:
        """Forget what ended long ago."""
        ended = [holding.lapsed(lease, self.now) for lease in self.leases]
        self.leases = [lease for lease in ended if lease.ended_at is None or lease.ended_at > self.now - KEPT]

    def figures(self) -> list[Figure]:
        """As the port says, counted one by one."""
        found = []
        for level in self.declared():
            on = [lease for lease in self.leases if level.subject in lease.subjects]
            live = [lease for lease in on if lease.live(self.now)]
            requests, tokens = self._weight(on)
            usage = Usage(
                in_use=len(live),
                in_use_current_epoch=len([lease for lease in live if lease.epoch_on(level) == level.epoch]),
                requests=requests,
                tokens=tokens,
                oldest_request=min((lease.reserved_at for lease in self._recent(on)), default=None),
                oldest_overuse=min((lease.ended_at for lease in on if self._overused(lease)), default=None),
            )
            found.append(Figure(level, usage))
        return found

    def live(self) -> list[Lease]:
        """Live leases, oldest first."""
        return sorted(
            (lease for lease in self.leases if lease.live(self.now)), key=lambda lease: (lease.reserved_at, lease.id)
        )

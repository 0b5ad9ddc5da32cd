"""The memory twin of the store. Every method runs without an await between its first read and its last write."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from libs.kernel.clock import Clock
from services.capacity.domain import holding, ledger, pacing
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import HealthLimit, Level, Subject, newer
from services.capacity.domain.pacing import SILENT, UNPACED, Feedback
from services.capacity.ports import Figure, Renewal

KEEP_ENDED = timedelta(seconds=120)  # windows look back 60 s; a repeated reservation of an ended lease is still known


class MemoryCapacityStore:
    """ports.CapacityStore in this process, under the world's clock. Nothing outlives it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._revision = 0
        self._levels: dict[Subject, Level] = {}
        self._retired: set[Subject] = set()
        self._leases: dict[str, Lease] = {}
        self._by_subject: dict[Subject, dict[str, Lease]] = defaultdict(dict)

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Decide by the ledger."""
        now = self._clock.now()
        known = self._leases.get(request.lease_id)
        if known is not None:
            return holding.repeated(known, request, now)
        declared = [self._levels[subject] for subject in request.subjects if self._declares(subject)]
        ledger.checked(declared, request)
        levels = [ledger.heard(level, request) for level in declared]
        refusal = ledger.decide(levels, self._leases_on(levels), request, now)
        self._levels.update({level.subject: level for level in levels})
        if refusal is not None:
            return refusal
        lease = lease_of(request, now)
        self._keep(lease)
        return lease

    async def renew(
        self, holder: str, lease_ids: Sequence[str], ttl: timedelta, taught: Sequence[Lease] = ()
    ) -> Renewal:
        """Prolong what is held."""
        now = self._clock.now()
        done: list[str] = []
        for lease_id in lease_ids:
            lease = holding.renewed(self._leases.get(lease_id), holder, ttl, now)
            if lease is not None:
                self._keep(lease)
                done.append(lease_id)
        return Renewal(tuple(done), tuple(lease_id for lease_id in lease_ids if lease_id not in done))

    async def release(
        self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT
    ) -> Lease | None:
        """Give it back, and learn from how it went."""
        now = self._clock.now()
        lease = holding.released(self._leases.get(lease_id), holder, used_tokens, now)
        if lease is not None:
            self._learn(lease, feedback, now)
            self._keep(lease)
        return lease

    def _learn(self, lease: Lease, feedback: Feedback, now: datetime) -> None:
        """`lease` is still counted."""
        supply = lease.subjects[2]
        if self._declares(supply):
            level = self._levels[supply]
            in_use = ledger.usage_of(level, self._leases_on([level]), now).in_use
            pace = pacing.told(level.pace, feedback, lease.reserved_at, now, in_use, level.concurrency)
            self._levels[supply] = replace(level, pace=pace)

    async def figures(self) -> list[Figure]:
        """Every declared level."""
        now = self._clock.now()
        levels = [self._levels[subject] for subject in sorted(self._levels) if self._declares(subject)]
        return [Figure(level, ledger.usage_of(level, self._leases_on([level]), now)) for level in levels]

    async def leases(self) -> list[Lease]:
        """Live leases, oldest first."""
        now = self._clock.now()
        live = [lease for lease in self._leases.values() if lease.live(now)]
        return sorted(live, key=lambda lease: (lease.reserved_at, lease.id))

    async def apply_levels(self, revision: int, levels: Sequence[Level]) -> int:
        """Declare levels, keep their health and pace."""
        if revision < self._revision:
            return self._revision
        for level in levels:
            known = self._levels.get(level.subject)
            self._levels[level.subject] = replace(
                level, health=known.health if known else None, pace=known.pace if known else UNPACED
            )
        self._retired = self._levels.keys() - {level.subject for level in levels}
        self._revision = revision
        return revision

    async def hear(self, health: Mapping[Subject, HealthLimit]) -> None:
        """Keep what is newer."""
        for subject, told in health.items():
            if self._declares(subject):
                level = self._levels[subject]
                self._levels[subject] = replace(level, health=newer(level.health, told))

    async def catalog_revision(self) -> int:
        """The revision in force."""
        return self._revision

    async def sweep(self) -> frozenset[Subject]:
        """End what lapsed, forget what ended long ago."""
        now = self._clock.now()
        freed: set[Subject] = set()
        for lease in tuple(self._leases.values()):
            ended = holding.lapsed(lease, now)
            if ended is not lease:
                self._keep(ended)
                freed.update(lease.subjects)
            if ended.ended_at is not None and ended.ended_at <= now - KEEP_ENDED:
                self._forget(lease)
        return frozenset(freed)

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _declares(self, subject: Subject) -> bool:
        return subject in self._levels and subject not in self._retired

    def _leases_on(self, levels: Sequence[Level]) -> list[Lease]:
        found: dict[str, Lease] = {}
        for level in levels:
            found.update(self._by_subject[level.subject])
        return list(found.values())

    def _keep(self, lease: Lease) -> None:
        self._leases[lease.id] = lease
        for subject in lease.subjects:
            self._by_subject[subject][lease.id] = lease

    def _forget(self, lease: Lease) -> None:
        del self._leases[lease.id]
        for subject in lease.subjects:
            del self._by_subject[subject][lease.id]

"""Sees every lease at the moment of its grant or refusal, and counts for itself what is held then."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import Kind
from services.health.domain.states import LADDER, SHUT
from services.health.domain.subjects import Kind as Sort
from services.health.domain.subjects import Subject
from tests.simulation.offers import Offers

WINDOW_S = 60.0


class Witness:
    """Compares with the catalogue's own figures, and with health where the asker knew its newest revision.

    `seen` counts what happened, so that a summary can tell whether a law had anything to judge.
    """

    def __init__(self, stores: Any, loop: Any, offers: Offers) -> None:
        self._stores = stores
        self._loop = loop
        self._offers = offers
        self._granted: dict[str, list[float]] = {}
        self.breaches: list[str] = []
        self.seen: Counter[str] = Counter()

    async def granted(self, request: Request, held: Sequence[Lease]) -> None:
        """A lease was granted; `held` are all in force, that one included."""
        self.seen["slots granted"] += 1
        channel, supply = request.channel_id, request.supply_id
        slots = sum(lease.channel_id == channel for lease in held)
        self._within(f"channel {channel}", slots, self._offers.channel_slots[channel])
        slots = sum(lease.supply_id == supply for lease in held)
        self._within(f"supply {supply}", slots, self._offers.supply_slots[supply])
        self._granted.setdefault(supply, []).append(self._loop.time())
        recent = self._recent(supply)
        self._within(f"supply {supply} in a minute", recent, self._offers.supply_rpm.get(supply) or recent)
        await self._by_health(Subject(Sort.CHANNEL, channel), request.channel_health, held, "channel")
        await self._by_health(Subject(Sort.SUPPLY, supply), request.supply_health, held, "supply")

    def refused(self, request: Request, refusal: Refusal, held: Sequence[Lease]) -> None:
        """A lease was refused; `held` are all in force. What is free must not be refused (CAP-1, CAP-4a)."""
        self.seen[f"refused by {refusal.gate}"] += 1
        subject = refusal.subject
        if subject.kind is Kind.GLOBAL:
            return
        sort = "channel" if subject.kind is Kind.CHANNEL else "supply"
        on = [lease for lease in held if getattr(lease, f"{sort}_id") == subject.id]
        slots = self._offers.channel_slots if sort == "channel" else self._offers.supply_slots
        if refusal.gate is Gate.CONCURRENCY:
            self._busy(f"{subject}", len(on), slots[subject.id])
        elif refusal.gate is Gate.REQUESTS:
            self._busy(f"{subject} in a minute", self._recent(subject.id), self._offers.supply_rpm[subject.id])
        elif refusal.gate is Gate.HEALTH:
            # Had the ledger heard of a newer state than the asker, it would have named that gate before this one.
            shown = request.health_of(subject)
            mine = sum(getattr(lease, f"{sort}_epoch") == (shown.epoch if shown else 0) for lease in on)
            self._busy(f"{subject} in its present epoch", mine, refusal.limit)
            self.seen["refused on the ladder"] += refusal.limit > 0

    async def _by_health(self, subject: Subject, shown: Any, held: Sequence[Lease], sort: str) -> None:
        record = next((item for item in await self._stores.health.records() if item.subject == subject), None)
        if record is None or record.breaker.health.revision != shown.revision:
            return
        health = record.breaker.health
        if health.state in SHUT:
            self.breaches.append(f"a slot of {subject} was granted while it was {health.state}")
        if health.state in LADDER:
            self.seen["granted on the ladder"] += 1
            on = [lease for lease in held if getattr(lease, f"{sort}_id") == subject.id]
            mine = sum(getattr(lease, f"{sort}_epoch") == health.epoch for lease in on)
            self.seen["granted beside older work"] += mine < len(on)
            self._within(f"{subject}, {health.state}", mine, record.breaker.allowed)

    def _recent(self, supply: str) -> int:
        since = self._loop.time() - WINDOW_S
        return sum(at > since for at in self._granted.get(supply, ()))

    def _within(self, what: str, used: int, limit: int | None) -> None:
        if limit is not None and used > limit:
            self.breaches.append(f"at {self._loop.time():.3f} s {what} holds {used} of {limit}")

    def _busy(self, what: str, used: int, limit: int) -> None:
        if used < limit:
            self.breaches.append(f"at {self._loop.time():.3f} s {what} was refused with {used} of {limit} in use")

"""Sees every lease at the moment of its grant, and counts for itself what is held then."""

from collections.abc import Sequence
from typing import Any

from services.capacity.domain.leases import Lease, Request
from services.health.domain.states import LADDER, SHUT
from services.health.domain.subjects import Kind as Sort
from services.health.domain.subjects import Subject
from tests.simulation.offers import CHANNEL_SLOTS, SUPPLY_RPM, SUPPLY_SLOTS

WINDOW_S = 60.0


class Witness:
    """Compares with the catalogue's own figures, and with health where the asker knew its newest revision."""

    def __init__(self, stores: Any, loop: Any) -> None:
        self._stores = stores
        self._loop = loop
        self._granted: dict[str, list[float]] = {}
        self.breaches: list[str] = []

    async def granted(self, request: Request, held: Sequence[Lease]) -> None:
        """A lease was granted; `held` are all in force, that one included."""
        channel, supply = request.channel_id, request.supply_id
        self._within(f"channel {channel}", sum(lease.channel_id == channel for lease in held), CHANNEL_SLOTS[channel])
        self._within(f"supply {supply}", sum(lease.supply_id == supply for lease in held), SUPPLY_SLOTS[supply])
        times = self._granted.setdefault(supply, [])
        times.append(self._loop.time())
        recent = sum(1 for at in times if at > self._loop.time() - WINDOW_S)
        self._within(f"supply {supply} in a minute", recent, SUPPLY_RPM.get(supply) or recent)
        await self._by_health(Subject(Sort.CHANNEL, channel), request.channel_health, held, "channel")
        await self._by_health(Subject(Sort.SUPPLY, supply), request.supply_health, held, "supply")

    async def _by_health(self, subject: Subject, shown: Any, held: Sequence[Lease], sort: str) -> None:
        record = next((item for item in await self._stores.health.records() if item.subject == subject), None)
        if record is None or record.breaker.health.revision != shown.revision:
            return
        health = record.breaker.health
        if health.state in SHUT:
            self.breaches.append(f"a slot of {subject} was granted while it was {health.state}")
        if health.state in LADDER:
            mine = sum(
                1
                for lease in held
                if getattr(lease, f"{sort}_id") == subject.id and getattr(lease, f"{sort}_epoch") == health.epoch
            )
            self._within(f"{subject}, {health.state}", mine, record.breaker.allowed)

    def _within(self, what: str, used: int, limit: int | None) -> None:
        if limit is not None and used > limit:
            self.breaches.append(f"at {self._loop.time():.3f} s {what} holds {used} of {limit}")

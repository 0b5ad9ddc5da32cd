"""Tells health, capacity and cost_quote what is on offer, until each of them has acknowledged the newest revision.

Declarative and idempotent: the whole catalogue is told every time, what is absent is retired there, and an older
revision than the last is ignored there. Told again every `again_s`, so that a peer that lost its memory learns it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.routing.domain.catalog import Catalog
from services.routing.ports import Capacity, CatalogReader, Health, Quotes

AGAIN_S = 30.0

log = logging.getLogger(__name__)


class _Told(NamedTuple):
    revision: int
    at: float


class CatalogPush:
    """One process's telling. `tick` is for a loop of about a second; it never raises a Fault."""

    def __init__(
        self,
        reader: CatalogReader,
        health: Health,
        capacity: Capacity,
        quotes: Quotes,
        clock: Clock,
        again_s: float = AGAIN_S,
    ) -> None:
        self._reader = reader
        self._clock = clock
        self._again_s = again_s
        self._peers: dict[str, Callable[[Catalog], Awaitable[int]]] = {
            "cost_quote": quotes.apply_prices,
            "health": health.apply_targets,
            "capacity": capacity.apply_limits,
        }
        self._told: dict[str, _Told] = {}
        self._turn = asyncio.Lock()

    async def tick(self) -> bool:
        """Tell whoever has not acknowledged. True when all three are at the newest revision."""
        async with self._turn:  # the loop and a change that waits for it would tell everything twice
            return await self._tell_all()

    async def _tell_all(self) -> bool:
        try:
            catalog = await self._reader.current()
        except Fault as fault:
            log.warning("the catalogue cannot be read, peers are told later: %s", fault)
            return False
        if catalog.revision == 0:
            return True
        done = [await self._tell(name, catalog) for name in self._peers]
        return all(done)

    async def _tell(self, name: str, catalog: Catalog) -> bool:
        told = self._told.get(name)
        now = self._clock.monotonic()
        if told is not None and told.revision >= catalog.revision and now - told.at < self._again_s:
            return True
        try:
            acknowledged = await self._peers[name](catalog)
        except Fault as fault:
            log.warning("%s was not told catalogue revision %s: %s", name, catalog.revision, fault)
            return False
        self._told[name] = _Told(acknowledged, now)
        return acknowledged >= catalog.revision

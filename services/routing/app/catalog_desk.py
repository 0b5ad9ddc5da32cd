"""What the catalogue's use-cases have at hand, and the catalogue as dispatch reads it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from libs.faults.fault import Fault
from libs.kernel.clock import Clock
from services.routing.domain.catalog import Catalog
from services.routing.domain.catalog_plan import Plan
from services.routing.domain.publication import Surroundings
from services.routing.domain.verification import Verification
from services.routing.ports import CatalogStore, Provider
from services.routing.ports.verification import VerificationStore

KEPT = 16
"""Revisions kept in memory: Attempts in flight use few."""
FRESH_S = 1.0
ASKS, ASK_AGAIN_S = 5, 0.5
"""How often provider_adapter is asked before its silence counts, and the pause between."""
TELL_S = 3.0
"""A change is answered when all peers know it, and after this time at the latest; the rest is the push's to repeat."""


class CatalogView:
    """Implements `ports.CatalogReader` over a store: at most `fresh_s` old, and at once after a change made here."""

    def __init__(self, store: CatalogStore, clock: Clock, fresh_s: float = FRESH_S) -> None:
        self._store = store
        self._clock = clock
        self._fresh_s = fresh_s
        self._newest = Catalog(revision=0)
        self._looked_at: float | None = None
        self._kept: dict[int, Catalog] = {}
        self._look = asyncio.Lock()

    async def current(self) -> Catalog:
        """See the port."""
        if self._is_stale():
            async with self._look:  # a claimed batch asks at once: one of them looks for all
                if self._is_stale():
                    await self._refresh()
        return self._newest

    async def newest(self) -> Catalog:
        """See the port."""
        async with self._look:
            await self._refresh()
        return self._newest

    def _is_stale(self) -> bool:
        return self._looked_at is None or self._clock.monotonic() - self._looked_at >= self._fresh_s

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        revision = await self._store.revision()
        if revision > self._newest.revision:
            self.learned(await self.at(revision))
        self._looked_at = now

    async def at(self, revision: int) -> Catalog:
        """See the port. Fault `not_found` for a revision that never was."""
        if revision == 0:
            return Catalog(revision=0)
        found = self._kept.get(revision) or await self._store.snapshot(revision)
        if found is None:
            raise Fault.of("not_found", f"there is no catalogue revision {revision}")
        self._keep(found)
        return found

    def learned(self, catalog: Catalog) -> None:
        """A change was committed in this process: readers see it at once."""
        if catalog.revision > self._newest.revision:
            self._newest = catalog
        self._keep(catalog)

    def _keep(self, catalog: Catalog) -> None:
        self._kept.pop(catalog.revision, None)
        self._kept[catalog.revision] = catalog
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]


@dataclass(frozen=True, slots=True)
class CatalogDesk:
    """Ports and clock of this process. After every commit `changed` is called, to push sooner than the next tick, and
    `tell` is awaited: whoever was answered may build on what peers were told."""

    store: CatalogStore
    view: CatalogView
    provider: Provider
    clock: Clock
    changed: list[Callable[[], None]] = field(default_factory=list)
    tell: Callable[[], Awaitable[object]] | None = None
    longest_lease_s: float = 120.0
    """The longest time to live that capacity grants: no synchronous call may take longer (SYN-12)."""
    settle_s: float = 10.0
    """Beyond the submission timeout, until absence in a provider's records proves something (ATT-6)."""
    verifications: VerificationStore | None = None

    async def commit(self, base: int, plan: Plan) -> None:
        """Write a plan that changes something, and let this process know. Fault `revision_conflict` if overtaken."""
        if plan.holdings.revision == base:
            return
        await self.store.commit(base, plan.holdings, plan.catalog, plan.revisions)
        self.view.learned(plan.catalog)
        for listener in self.changed:
            listener()
        if self.tell is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(TELL_S):
                    await self.tell()

    async def around(self, catalog: Catalog) -> Surroundings:
        """What provider_adapter says about the dialects and secrets that a catalogue names.

        Its silence is an answer too: nothing is published then, and the reason is told. But a moment's silence is not:
        a replica that was just killed, or one that starts, must not take every model out of use.
        """
        refs = sorted({channel.secret for channel in catalog.channels.values() if channel.secret})
        verified = await self.verified()
        silence = ""
        for turn in range(ASKS):
            if turn:
                await self.clock.sleep(ASK_AGAIN_S)
            try:
                adapters = await self.provider.adapters()
                unresolved = await self.provider.unresolved_secrets(refs) if refs else {}
            except Fault as fault:
                silence = f"provider_adapter did not answer ({fault.code})"
                if fault.code != "peer_unavailable":  # it has had its time, or has said why
                    break
            else:
                return Surroundings(adapters, dict(unresolved), verified=verified)
        return Surroundings(silence=silence, verified=verified)

    async def verified(self) -> Mapping[str, Verification]:
        """By Supply: its newest verification that has ended."""
        return await self.verifications.newest() if self.verifications else {}


TRIES = 4
"""How often a change is planned anew when another process was faster."""

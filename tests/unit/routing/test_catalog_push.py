"""Telling the peers, and the catalogues that we ship."""

from pathlib import Path

import pytest

from libs.faults.fault import Fault
from services.routing.app.apply_catalog import apply_catalog
from services.routing.app.push_catalog import CatalogPush
from services.routing.domain.capability import misfits
from services.routing.domain.catalog import Catalog, Kind, Tier
from services.routing.domain.request_facts import facts_of
from tests.unit.routing.catalog_market import MARKET, StillClock, new_desk


class Peers:
    """health, capacity and cost_quote: they acknowledge, or are away."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.away: set[str] = set()
        self.behind = False

    def _hear(self, name: str, catalog: Catalog) -> int:
        if name in self.away:
            raise Fault.of("peer_unavailable", f"{name} cannot be reached")
        self.told.append((name, catalog.revision))
        return catalog.revision - self.behind

    async def apply_targets(self, catalog: Catalog) -> int:
        """See `ports.Health`."""
        return self._hear("health", catalog)

    async def apply_limits(self, catalog: Catalog) -> int:
        """See `ports.Capacity`."""
        return self._hear("capacity", catalog)

    async def apply_prices(self, catalog: Catalog) -> int:
        """See `ports.Quotes`."""
        return self._hear("cost_quote", catalog)


async def test_peers_are_told_until_each_has_acknowledged():
    """CAT-2: the newest revision reaches all three, one that was away is told later, and all again after a while."""
    clock, peers = StillClock(), Peers()
    desk = new_desk(clock)
    push = CatalogPush(desk.view, peers, peers, peers, clock)
    assert await push.tick()
    assert peers.told == []
    await apply_catalog(desk, MARKET, merge=False)
    peers.away = {"health"}
    assert not await push.tick()
    assert sorted(peers.told) == [("capacity", 1), ("cost_quote", 1)]
    peers.away = set()
    assert await push.tick()
    assert await push.tick()
    assert sorted(peers.told) == [("capacity", 1), ("cost_quote", 1), ("health", 1)]
    await clock.sleep(31)
    assert await push.tick()
    assert len(peers.told) == 6


async def test_a_peer_that_acknowledges_less_is_told_again():
    """CAT-2: only the newest revision counts as told."""
    clock, peers = StillClock(), Peers()
    desk = new_desk(clock)
    push = CatalogPush(desk.view, peers, peers, peers, clock)
    await apply_catalog(desk, MARKET, merge=False)
    peers.behind = True
    assert not await push.tick()
    peers.behind = False
    assert await push.tick()
    assert len(peers.told) == 6


SHIPPED = sorted((Path(__file__).parents[3] / "deploy" / "catalogs").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
async def test_every_shipped_catalogue_passes_the_gate(path: Path):
    """CAT-1, CAT-3: what we give to users has no fault, and every model that asks for it is open."""
    plan = await apply_catalog(new_desk(StillClock()), path.read_text(), merge=False)
    assert {standing.model: standing.words() for standing in plan.standings if not standing.published} == {}


async def test_no_shipped_chat_takes_what_it_would_ignore():
    """SYN-12: the studio's chats have no log probabilities, so a request for them fits none and is refused by name."""
    (path,) = [path for path in SHIPPED if path.name == "studio.yaml"]
    catalog = (await apply_catalog(new_desk(StillClock()), path.read_text(), merge=False)).catalog
    chats = [supply for supply in catalog.supplies.values() if supply.kind is Kind.CHAT]
    for field in ({"logprobs": True, "top_logprobs": 2}, {"logit_bias": {"1": 5}}, {"verbosity": "low"}):
        asked = facts_of(Kind.CHAT, {"messages": [{"role": "user", "content": "hi"}], **field})
        assert [{misfit.field for misfit in misfits(chat.capabilities, asked)} for chat in chats] == [{*field}] * 2
    plain = facts_of(Kind.CHAT, {"messages": [], "temperature": 1, "top_p": 1, "seed": 7, "stop": ["x"]})
    assert all(not misfits(chat.capabilities, plain) for chat in chats)


async def test_the_studios_burst_has_five_eight_and_three_slots():
    """CAP-10: the example catalogue has a model whose exact Supplies hold 5 + 8 + 3 jobs over three Channels."""
    (path,) = [path for path in SHIPPED if path.name == "studio.yaml"]
    catalog = (await apply_catalog(new_desk(StillClock()), path.read_text(), merge=False)).catalog
    exact = [catalog.supplies[b.supply] for b in catalog.models["shot-900"].bindings if b.tier is Tier.EXACT]
    assert sorted(supply.limits.concurrency for supply in exact) == [3, 5, 8]
    assert len({supply.channel for supply in exact}) == 3
    tiers = {b.tier for model in catalog.models.values() for b in model.bindings if model.kind is Kind.VIDEO}
    assert tiers == set(Tier)

"""`RemoteLedger` against the real context `cost_quote`, over loopback."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from services.cost_quote.compose import assemble
from services.cost_quote.domain.budgets import Amounts, Asked, Budget, ChangeAsk, HoldAsk
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.memory import MemoryPriceBooks
from services.routing.peers.ledger import RemoteLedger
from services.routing.ports.ledger import Ledger, OpenHold
from tests.contract.cost_quote.ledgers import NotingBudgets
from tests.support.worlds import START, SteeredClock

DAY = "tenant:a:day:2026-01-01:CNY"


def cny(amount: str) -> Money:
    """Yuan."""
    return Money("CNY", Decimal(amount))


class BusyBudgets(NotingBudgets):
    """Before each change of a limit something is held that was not seen; `coming` are the Holds still to come."""

    coming: tuple[HoldAsk, ...] = ()

    async def change(self, ask: ChangeAsk) -> Budget:
        """See the port."""
        coming, self.coming = self.coming[:1], self.coming[1:]
        for each in coming:
            await self.hold(each)
        return await super().change(ask)


@pytest.fixture
def budgets() -> BusyBudgets:
    """What is behind the door."""
    return BusyBudgets(SteeredClock())


@pytest.fixture
async def ledger(budgets: MemoryBudgets) -> AsyncIterator[Ledger]:
    """The port; a USD is 7 CNY."""
    books = MemoryPriceBooks()
    await books.add(1, "CNY", {"USD": "7.00"}, [])
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(books, SteeredClock(), budgets).registrations:
        server.add(add_to_server)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        yield RemoteLedger(channels.to("cost_quote"), 5.0)
    await server.close()


async def figures(budgets: MemoryBudgets) -> tuple[float, float, float]:
    """(hard, spent, held) in yuan."""
    budget = await budgets.get(DAY)
    assert budget is not None
    return budget.hard.cost / 1e9, budget.spent.cost / 1e9, budget.held.cost / 1e9


async def test_a_quota_is_declared_and_follows_the_catalogue(ledger: Ledger, budgets: MemoryBudgets) -> None:
    """COST-9: made once, changed when the catalogue says otherwise, and not below what is used."""
    for cost in ("100", "100", "120"):
        await ledger.declare(DAY, "a", "CNY", cny(cost), "catalogue revision 2")
    assert await figures(budgets) == (120, 0, 0)
    assert await ledger.hold("task:1", DAY, cny("50"), 2, "task:1") is None
    await ledger.declare(DAY, "a", "CNY", cny("10"), "catalogue revision 3")
    assert await figures(budgets) == (50, 0, 50)
    assert [entry.reason for entry in await budgets.entries(DAY, 0, 9)][-1] == "catalogue revision 3"


async def test_a_budget_without_a_quota_only_counts(ledger: Ledger, budgets: MemoryBudgets) -> None:
    """COST-9: it has no limit; a quota that comes within its period is one, and stays until somebody lifts it."""
    for limit, told in ((None, 0), (cny("30"), 30), (None, 30)):
        await ledger.declare(DAY, "a", "CNY", limit, "catalogue revision 2")
        assert await figures(budgets) == (told, 0, 0)


@pytest.mark.parametrize(
    "limit",
    [
        {"hard": Amounts(2)},
        {"hard": Amounts(0, 1)},
        {"hard": Amounts(0, 0, 1)},
        {"deadline_at": START + timedelta(days=1)},
    ],
)
async def test_whether_a_budget_limits_anything(ledger: Ledger, budgets: MemoryBudgets, limit: dict[str, Any]) -> None:
    """COST-9, COST-10: in whatever dimension; a soft limit refuses nothing."""
    await ledger.declare(DAY, "a", "CNY", None, "a test")
    await budgets.change(ChangeAsk(DAY, "to be told", soft=Amounts(1)))
    assert not await ledger.limited(DAY)
    await budgets.change(ChangeAsk(DAY, "a limit", **limit))
    assert await ledger.limited(DAY)
    with pytest.raises(Fault) as caught:
        await ledger.limited("nowhere")
    assert caught.value.code == "not_found"


@pytest.mark.parametrize("first", [None, "30"])
async def test_what_a_person_makes_of_a_quota_stands(ledger: Ledger, budgets: MemoryBudgets, first: str | None) -> None:
    """COST-10: a process that begins declares the quota again, and takes no raise back; a quota that the catalogue has
    come to anew is in force."""
    await ledger.declare(DAY, "a", "CNY", cny(first) if first else None, "a test")
    await ledger.declare(DAY, "a", "CNY", cny("30"), "catalogue revision 2")
    await budgets.change(ChangeAsk(DAY, "Ann: more room", Amounts(60 * 10**9)))
    for revision, told in ((0, 60), (3, 30)):
        await ledger.declare(DAY, "a", "CNY", cny("30"), "catalogue revision 3", revision)
        assert await figures(budgets) == (told, 0, 0)


async def test_a_quota_is_reached_when_there_is_room(ledger: Ledger, budgets: MemoryBudgets) -> None:
    """AUTH-2, COST-9: one below what is spent and held follows what is given back, unless a person has spoken."""
    await ledger.declare(DAY, "a", "CNY", None, "a test")
    for name in ("task:1", "task:2"):
        await ledger.hold(name, DAY, cny("20"), 1, name)
    assert await ledger.declare(DAY, "a", "CNY", cny("10"), "catalogue revision 2") == cny("40")
    assert await ledger.lower(DAY, cny("10"), cny("40"), "the quota") == cny("40")
    await ledger.settle("task:1", cny("3"), 1, "task succeeded")
    assert await ledger.lower(DAY, cny("10"), cny("40"), "the quota") == cny("23")
    assert await ledger.lower(DAY, cny("10"), cny("40"), "the quota") is None
    await ledger.settle("task:2", cny("3"), 1, "task succeeded")
    assert await ledger.lower(DAY, cny("10"), cny("23"), "the quota") == cny("10")
    assert await figures(budgets) == (10, 6, 0)


async def test_a_quota_below_what_a_busy_tenant_uses_stops_just_there(ledger: Ledger, budgets: BusyBudgets) -> None:
    """COST-9, COST-11: what is held between the look at the budget and the change of its limit counts too."""
    await ledger.declare(DAY, "a", "CNY", None, "a test")
    await ledger.hold("task:1", DAY, cny("5"), 1, "task:1")
    five = Asked(5 * 10**9, "CNY", 1, 0, {"CNY": 5 * 10**9})
    budgets.coming = tuple(HoldAsk(name, DAY, five, name) for name in ("task:2", "task:3"))
    await ledger.declare(DAY, "a", "CNY", cny("1"), "catalogue revision 3")
    assert await figures(budgets) == (15, 0, 15)


async def test_what_is_asked_at_once_travels_together(ledger: Ledger, budgets: MemoryBudgets) -> None:
    """COST-9: Holds of many calls, and their settlements; whose is none of them spoils it for nobody."""
    await ledger.declare(DAY, "a", "CNY", cny("20"), "a test")
    names = [f"call:{number}" for number in range(6)]
    told = await asyncio.gather(*(ledger.hold(name, DAY, cny("4"), 1, name) for name in names))
    assert [item is None for item in told] == [True] * 5 + [False]
    await asyncio.gather(*(ledger.settle(name, cny("3"), 1, "call succeeded") for name in names))
    assert await figures(budgets) == (20, 15, 0)


async def test_a_hold_asked_again_at_another_price_is_covered(ledger: Ledger, budgets: MemoryBudgets) -> None:
    """COST-9, COST-11: who died between the Hold and the intent asks again, at the quotes of the day; what is
    lacking is added, in any currency, within the limit."""
    await ledger.declare(DAY, "a", "CNY", cny("100"), "a test")
    for _ in range(2):
        assert await ledger.hold("task:1", DAY, cny("50"), 2, "task:1") is None
    with pytest.raises(Fault) as again:
        await ledger.hold("task:1", DAY, cny("60"), 2, "task:1")
    assert again.value.code == "already_exists"
    for cost in (cny("40"), Money("USD", Decimal("7.5"))):
        assert await ledger.cover("task:1", cost, "dearer") is None
    assert await figures(budgets) == (100, 0, 52.5)
    beyond = await ledger.cover("task:1", cny("101"), "dearer")
    assert beyond is not None
    assert (beyond.budget, beyond.dimension) == (DAY, "cost")
    for name, code in (("task:9", "not_found"), ("task:1", "conflict")):
        with pytest.raises(Fault) as refusal:
            await ledger.cover(name, cny("1"), "dearer")
        assert refusal.value.code == code
        await ledger.release("task:1", "nothing was sent")
    assert await ledger.hold("task:3", DAY, cny("50"), 2, "task:3") is None
    refused = await ledger.hold("task:2", DAY, Money("USD", Decimal("7.2")), 2, "task:2")
    assert refused is not None
    assert (refused.budget, refused.level, refused.dimension) == (DAY, "tenant", "cost")
    assert "50.40 CNY more is asked" in refused.message
    with pytest.raises(Fault) as caught:
        await ledger.hold("task:2", "nowhere", cny("1"), 1, "task:2")
    assert caught.value.code == "not_found"


async def test_settlements_replace_one_another_and_open_holds_are_found(ledger: Ledger, budgets: BusyBudgets) -> None:
    """COST-11, COST-12: what is booked last stands; a Hold that was never taken needs no settlement. The running check
    asks for what came since the last look."""
    await ledger.declare(DAY, "a", "CNY", cny("100"), "a test")
    for name in ("task:1", "task:2"):
        await ledger.hold(name, DAY, cny("10"), 2, name)
    for cost in ("3", "3", "4"):
        await ledger.settle("task:1", cny(cost), 1, "task succeeded")
    await ledger.settle("task:9", cny("5"), 1, "task succeeded")
    assert await figures(budgets) == (100, 4, 10)
    [left] = await ledger.open_holds("task:", "", 10)
    assert left == OpenHold("task:2", START, "CNY")
    await ledger.release("task:2", "nothing was sent")
    assert (await figures(budgets), await ledger.mismatches()) == ((100, 4, 0), [])
    assert budgets.whole == [False]

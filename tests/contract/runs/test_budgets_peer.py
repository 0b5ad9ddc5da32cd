"""`BudgetsPeer` against the real context `cost_quote`, over loopback."""

from decimal import Decimal

from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from services.cost_quote.compose import assemble
from services.cost_quote.domain.budgets import Amounts, Declaration
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.cost_quote.store.memory import MemoryPriceBooks
from services.runs.domain.task_view import Refused
from services.runs.peers.budgets import BudgetsPeer
from tests.support.worlds import SteeredClock


def cny(amount: str) -> Money:
    """Yuan."""
    return Money("CNY", Decimal(amount))


async def test_a_refusal_tells_whether_waiting_may_mend_it() -> None:
    """COST-10: it may while what is spent leaves room in every dimension, and no more when it does not; a level tells
    what is spent apart from what is used."""
    budgets, registry = MemoryBudgets(SteeredClock()), LoopbackRegistry()
    await budgets.create(Declaration("film", "project", currency="CNY", hard=Amounts(10 * 10**9, 5)))
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(MemoryPriceBooks(), SteeredClock(), budgets).registrations:
        server.add(add_to_server)
    await server.start()
    async with Channels(registry=registry, caller="runs") as channels:
        peer = BudgetsPeer(channels.to("cost_quote"))
        await peer.hold("other", "film", cny("8.00"), 4, "another")

        async def may_free(cost: str, attempts: int) -> bool:
            answer = await peer.hold(f"mine-{cost}-{attempts}", "film", cny(cost), attempts, "mine")
            assert isinstance(answer, Refused)
            return answer.may_free

        assert [await may_free("4.00", 1), await may_free("4.00", 6), await may_free("11.00", 1)] == [
            True,
            False,
            False,
        ]
        await peer.settle("other", cny("7.00"), 2, "it ended")
        level = await peer.level("film")
        assert (level.spent["cost"], level.spent["attempts"], level.used["cost"]) == (
            Decimal(7),
            Decimal(2),
            Decimal(7),
        )
        await peer.hold("third", "film", cny("2.00"), 1, "a third")
        assert [await may_free("3.00", 1), await may_free("4.00", 1)] == [True, False]
    await server.close()

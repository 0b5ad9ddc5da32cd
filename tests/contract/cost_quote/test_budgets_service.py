"""`BudgetService` over loopback: the whole context with its rate table, eight RPCs and the check."""

from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from google.type.money_pb2 import Money

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from services.cost_quote.compose import assemble
from services.cost_quote.store.memory import MemoryPriceBooks
from tests.support.worlds import SteeredClock

CALL_S = 10.0


@pytest.fixture
async def service() -> AsyncIterator[Any]:
    """A stub; a USD is 7.30 CNY, a EUR 8.00."""
    books = MemoryPriceBooks()
    await books.add(1, "CNY", {"USD": "7.30", "EUR": "8.00"}, [])
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(books, SteeredClock()).registrations:
        server.add(add_to_server)
    await server.start()
    async with Channels(registry=registry, caller="runs") as channels:
        yield BudgetServiceStub(channels.to("cost_quote"))
    await server.close()


def money(units: int, nanos: int = 0, currency: str = "CNY") -> budget_pb2.Amounts:
    """Money alone."""
    return budget_pb2.Amounts(cost=Money(currency_code=currency, units=units, nanos=nanos))


async def create(service: Any, budget_id: str, **fields: Any) -> budget_pb2.Budget:
    """Make a budget."""
    budget = budget_pb2.Budget(id=budget_id, level="project", **{"currency": "CNY", **fields})
    return (await service.CreateBudget(pb.CreateBudgetRequest(budget=budget), timeout=CALL_S)).budget


async def hold(service: Any, hold_id: str, budget_id: str, amounts: budget_pb2.Amounts) -> pb.HoldResponse:
    """Take a Hold."""
    asked = pb.HoldRequest(hold_id=hold_id, budget_id=budget_id, amounts=amounts, subject="node a")
    return await service.Hold(asked, timeout=CALL_S)


async def fault_of(call: Awaitable[Any]) -> Fault:
    """The fault in which it ends."""
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await call
    return caught.value


async def test_the_life_of_a_hold_through_the_door(service: Any) -> None:
    """COST-9: made, held, settled, listed; figures come in the budget's currency, and spent apart from held."""
    await create(service, "p", hard=money(20), soft=money(9), value_class=budget_pb2.VALUE_CLASS_HERO)
    await create(service, "e", parent_id="p", currency="")
    taken = await hold(service, "1", "e", money(9))
    assert (taken.hold.state, list(taken.soft_limit_budget_ids), list(taken.soft_budget_ids)) == (
        budget_pb2.HOLD_STATE_HELD,
        ["p"],
        ["p"],
    )
    settled = await service.Settle(pb.SettleRequest(hold_id="1", amounts=money(10)), timeout=CALL_S)
    assert (settled.hold.settled.cost.units, settled.beyond.cost.units) == (10, 1)
    await hold(service, "2", "e", money(4))
    listed = await service.ListBudgets(pb.ListBudgetsRequest(page_size=1), timeout=CALL_S)
    assert [budget.id for budget in listed.budgets] == ["p"]
    rest = await service.ListBudgets(pb.ListBudgetsRequest(page_token=listed.next_page_token), timeout=CALL_S)
    [budget] = rest.budgets
    assert (budget.id, budget.parent_id, budget.spent.cost.units, budget.held.cost.units) == ("e", "p", 10, 4)
    assert not budget.hard.HasField("cost")
    released = await service.ReleaseHold(pb.ReleaseHoldRequest(hold_id="2"), timeout=CALL_S)
    assert released.hold.state == budget_pb2.HOLD_STATE_RELEASED
    entries = (await service.ListEntries(pb.ListEntriesRequest(budget_id="e"), timeout=CALL_S)).entries
    assert [(entry.sequence, entry.held.cost.units, entry.spent.cost.units) for entry in entries] == [
        (1, 9, 0),
        (2, -9, 10),
        (3, 4, 0),
        (4, -4, 0),
    ]
    assert not (await service.CheckLedger(pb.CheckLedgerRequest(), timeout=CALL_S)).mismatches


async def test_several_are_held_and_settled_in_one_call(service: Any) -> None:
    """COST-9: each as if alone, in their order; a fault is that of the first that has one, and asking again one by one
    under the same ids takes nothing twice."""
    await create(service, "p", hard=money(10))
    asks = [pb.HoldRequest(hold_id=name, budget_id="p", amounts=money(6), subject="s") for name in ("1", "2")]
    for _ in range(2):
        answers = (await service.BatchHold(pb.BatchHoldRequest(requests=asks), timeout=CALL_S)).responses
        assert [answer.HasField("hold") for answer in answers] == [True, False]
        assert answers[1].refusal.budget_id == "p"
    stray = pb.HoldRequest(hold_id="3", budget_id="nowhere", amounts=money(1), subject="s")
    asked = pb.BatchHoldRequest(requests=[*asks, stray])
    assert (await fault_of(service.BatchHold(asked, timeout=CALL_S))).code == "not_found"
    settle = [pb.SettleRequest(hold_id="1", amounts=money(5))]
    for _ in range(2):
        booked = (await service.BatchSettle(pb.BatchSettleRequest(requests=settle), timeout=CALL_S)).responses
        assert [answer.hold.settled.cost.units for answer in booked] == [5]
    settle.append(pb.SettleRequest(hold_id="2", amounts=money(5)))
    late = pb.BatchSettleRequest(requests=settle)
    assert (await fault_of(service.BatchSettle(late, timeout=CALL_S))).code == "not_found"
    many = await fault_of(service.BatchHold(pb.BatchHoldRequest(requests=asks * 129), timeout=CALL_S))
    assert [error.pointer for error in many.errors] == ["/requests"]
    [budget] = (await service.ListBudgets(pb.ListBudgetsRequest(), timeout=CALL_S)).budgets
    assert (budget.spent.cost.units, budget.held.cost.units) == (5, 0)


async def test_a_hold_grows_through_the_door(service: Any) -> None:
    """COST-11: a larger amount in any currency; nothing asked for answers the Hold as it stands; a refusal tells
    its figures."""
    await create(service, "p", hard=money(100))
    await hold(service, "h", "p", money(10))
    dollars = pb.EnlargeHoldRequest(hold_id="h", amounts=money(10, currency="USD"), reason="dearer")
    grown = await service.EnlargeHold(dollars, timeout=CALL_S)
    assert (grown.hold.amounts.cost, grown.HasField("refusal")) == (money(73).cost, False)
    assert (await service.EnlargeHold(pb.EnlargeHoldRequest(hold_id="h"), timeout=CALL_S)).hold == grown.hold
    over = await service.EnlargeHold(pb.EnlargeHoldRequest(hold_id="h", amounts=money(101)), timeout=CALL_S)
    assert (over.refusal.budget_id, over.refusal.asked.cost, over.HasField("hold")) == ("p", money(28).cost, False)


async def test_a_refusal_names_level_dimension_and_figures(service: Any) -> None:
    """COST-10: what a person or an engine needs to ask for more; the value class says who may."""
    await create(service, "p", hard=money(20), value_class=budget_pb2.VALUE_CLASS_BACKGROUND)
    refusal = (await hold(service, "1", "p", money(20, 1))).refusal
    assert (refusal.budget_id, refusal.level, refusal.dimension) == ("p", "project", "cost")
    assert (refusal.value_class, refusal.hard.cost.units, refusal.asked.cost.nanos) == (
        budget_pb2.VALUE_CLASS_BACKGROUND,
        20,
        1,
    )
    changed = pb.ChangeLimitsRequest(budget_id="p", hard=money(21), reason="Ann: one more take")
    assert (await service.ChangeLimits(changed, timeout=CALL_S)).budget.hard.cost.units == 21
    assert (await hold(service, "1", "p", money(20, 1))).HasField("hold")
    entries = (await service.ListEntries(pb.ListEntriesRequest(budget_id="p"), timeout=CALL_S)).entries
    assert (entries[0].reason, entries[0].hard.cost.units) == ("Ann: one more take", 21)


async def test_a_mask_says_which_limits_change(service: Any) -> None:
    """COST-10: without a mask a limit is changed whole; with one what it does not name stays; a name that is none is
    refused."""
    hard = money(20)
    hard.attempts = 5
    await create(service, "p", hard=hard, soft=money(10))
    asked = pb.ChangeLimitsRequest(budget_id="p", hard=budget_pb2.Amounts(attempts=7), reason="Ann")
    asked.update_mask.paths[:] = ["hard.attempts", "soft.cost"]
    budget = (await service.ChangeLimits(asked, timeout=CALL_S)).budget
    hard.attempts = 7
    assert (budget.hard, budget.soft) == (hard, budget_pb2.Amounts())
    asked.update_mask.paths.append("hard.colour")
    refused = await fault_of(service.ChangeLimits(asked, timeout=CALL_S))
    assert ([error.pointer for error in refused.errors], "hard.colour" in refused.message) == (["/update_mask"], True)
    asked.ClearField("update_mask")
    budget = (await service.ChangeLimits(asked, timeout=CALL_S)).budget
    assert (budget.hard, budget.soft) == (budget_pb2.Amounts(attempts=7), budget_pb2.Amounts())


async def test_other_currencies_are_converted_by_the_rates_in_force(service: Any) -> None:
    """COST-3, COST-9: exactly, by way of the catalogue's currency; what is held is rounded up, what is booked to the
    nearest nano."""
    await create(service, "usd", currency="USD")
    taken = await hold(service, "1", "usd", money(10, currency="CNY"))
    assert (taken.hold.amounts.cost.currency_code, taken.hold.amounts.cost.units) == ("USD", 1)
    assert taken.hold.amounts.cost.nanos == 369_863_014
    settled = await service.Settle(pb.SettleRequest(hold_id="1", amounts=money(1, currency="EUR")), timeout=CALL_S)
    assert (settled.hold.settled.cost.units, settled.hold.settled.cost.nanos) == (1, 95_890_411)
    fault = await fault_of(hold(service, "2", "usd", money(1, currency="GBP")))
    assert fault.errors[0].reason == "is in GBP, and the catalogue's `fx` has no rate from GBP to USD"


@pytest.mark.parametrize(
    "hold_id, budget_id, amounts, pointer",
    [
        ("", "p", money(1), "/hold_id"),
        ("1", "", money(1), "/budget_id"),
        ("1", "p", money(-1), "/amounts/cost"),
        ("1", "p", budget_pb2.Amounts(attempts=-1), "/amounts/attempts"),
        ("1", "p", money(1, currency=""), "/amounts/cost"),
        ("1", "p", money(10**12), "/amounts/cost"),
    ],
)
async def test_what_cannot_be_held_is_refused_by_its_place(
    service: Any, hold_id: str, budget_id: str, amounts: budget_pb2.Amounts, pointer: str
) -> None:
    """COST-9: amounts are positive, have a currency and an end."""
    await create(service, "p")
    assert [error.pointer for error in (await fault_of(hold(service, hold_id, budget_id, amounts))).errors] == [pointer]


async def test_what_does_not_exist_is_not_found(service: Any) -> None:
    """EDG-2: a foreign budget in the same words as a missing one; a page token that nobody gave."""
    await create(service, "p", tenant="a")
    for asked in (pb.GetBudgetRequest(budget_id="q"), pb.GetBudgetRequest(budget_id="p", tenant="b")):
        assert (await fault_of(service.GetBudget(asked, timeout=CALL_S))).code == "not_found"
    mine = await service.GetBudget(pb.GetBudgetRequest(budget_id="p", tenant="a"), timeout=CALL_S)
    assert mine.budget.tenant == "a"
    fault = await fault_of(service.ListEntries(pb.ListEntriesRequest(budget_id="q"), timeout=CALL_S))
    assert fault.message == "budget 'q' does not exist"
    for token in ("x", "9" * 30):
        fault = await fault_of(service.ListBudgets(pb.ListBudgetsRequest(page_token=token), timeout=CALL_S))
        assert fault.code == "malformed_request"
    gone = await service.ReleaseHold(pb.ReleaseHoldRequest(hold_id="9"), timeout=CALL_S)
    assert not gone.HasField("hold")

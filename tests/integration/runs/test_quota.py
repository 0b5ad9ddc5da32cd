"""A tenant's quota of money over productions, over real peers, a real ledger and the studio."""

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.values import money_from_proto, struct_from
from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as ledger_pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from pointsman.routing.v1 import catalog_service_pb2
from pointsman.runs.v1 import run_pb2
from pointsman.runs.v1 import runs_service_pb2 as pb
from tests.integration.routing.stack import CALL_S, Stack, stack_over
from tests.integration.runs.test_pausing import SUCCEEDED, Runs
from tests.support.waiting import eventually_async

TENANT = """
tenants:
  - {id: t, models: ["*"], quotas: {spend: {cost: "5.00", currency: CNY, period: month}}}
"""
CLIP = {
    "id": "clip",
    "kind": "generate",
    "model": "clip",
    "input": {"prompt": "a boat", "duration_s": 4},
    "budget": {"attempts": 1},
}
"""It costs 4.00."""
ITS_OWN = {"currency": "CNY", "cost": "50.00"}


class Tenant(Runs):
    """Runs of a tenant that may spend 5.00 a month."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack)
        self._ledger: Any = BudgetServiceStub(stack.host.channels.to("cost_quote"))

    async def produce(self, budget: dict[str, Any], key: str = "", **fields: Any) -> str:
        """A new production of one clip; its id."""
        document = struct_from({"production": "p", "budget": budget, "nodes": [CLIP], **fields})
        asked = pb.CreateRunRequest(tenant="t", production=document, idempotency_key=key, fingerprint=key)
        return str((await self.call("CreateRun", asked)).id)

    async def refused(self, budget: dict[str, Any]) -> list[str]:
        """The fields that are wrong."""
        with pytest.raises(Fault) as caught:
            await self.produce(budget)
        return [error.pointer for error in caught.value.errors]

    async def asks(self, run_id: str) -> None:
        """Return once its node waits for a person."""

        async def waits() -> bool:
            return (await self.get(run_id)).nodes[0].state == run_pb2.NODE_STATE_WAITING_HUMAN

        await eventually_async(waits, 30)

    async def budgets(self) -> dict[str, budget_pb2.Budget]:
        """All of them."""
        async with faults_from_rpc():
            told = await self._ledger.ListBudgets(ledger_pb.ListBudgetsRequest(page_size=100), timeout=CALL_S)
        return {budget.id: budget for budget in told.budgets}

    async def make(self, budget_id: str) -> None:
        """A budget of the tenant's, as an operator makes it."""
        made = budget_pb2.Budget(id=budget_id, level="project", tenant="t", currency="CNY")
        async with faults_from_rpc():
            await self._ledger.CreateBudget(ledger_pb.CreateBudgetRequest(budget=made), timeout=CALL_S)


@pytest.fixture
async def tenant(pg_url: str, tmp_path: Path) -> AsyncIterator[Tenant]:
    """Who may spend so much, with everything at work."""
    async with stack_over(pg_url, tmp_path, above=("runs",)) as stack:
        await stack.apply({"aurora": 4})
        async with faults_from_rpc():
            more = catalog_service_pb2.ApplyRequest(catalog_yaml=f"version: 1\n{TENANT}", merge=True)
            await stack.catalog.Apply(more, timeout=CALL_S)
        yield Tenant(stack)


def money(amounts: budget_pb2.Amounts) -> Decimal:
    """In the only currency."""
    cost = money_from_proto(amounts.cost)
    assert isinstance(cost, Money)
    return cost.amount


async def test_a_budget_of_its_own_is_no_way_around_a_quota(tenant: Tenant) -> None:
    """AUTH-2, COST-9: of two productions whose own budgets have room, the tenant's quota pays one; the other asks, the
    tenant's own Runs find no money either, and an operator's budget is above neither."""
    first = await tenant.produce(ITS_OWN, key="k")
    assert await tenant.produce(ITS_OWN, key="k") == first
    await tenant.in_state(first, SUCCEEDED)
    second = await tenant.produce(ITS_OWN)
    await tenant.asks(second)
    found = await tenant.budgets()
    (period,) = [budget for budget in found.values() if budget.id.startswith("tenant:t:month:")]
    assert [found[f"run:{run_id}"].parent_id for run_id in (first, second)] == [period.id] * 2
    assert (money(period.hard), money(period.spent)) == (5, 4)
    single = await tenant.create("a boat")
    await tenant.in_state(single, run_pb2.RUN_STATE_FAILED)
    assert (await tenant.get(single)).failure.code == "budget_exhausted"
    await tenant.make("film")
    third = await tenant.produce({"currency": "CNY", "parent": "film"})
    await tenant.in_state(third, SUCCEEDED)
    assert money((await tenant.budgets())[period.id].spent) == 4


async def test_what_the_quota_cannot_count_is_refused(tenant: Tenant) -> None:
    """AUTH-2: another currency, and a budget of the ledger's own that is not the period's, each with its field."""
    run_id = await tenant.produce(ITS_OWN)
    assert await tenant.refused({"currency": "USD", "cost": "1.00"}) == ["/production/budget/currency"]
    assert await tenant.refused({"currency": "CNY", "parent": f"run:{run_id}"}) == ["/production/budget/parent"]
    given = struct_from({"prompt": "a boat", "duration_s": 4})
    asked = pb.CreateRunRequest(tenant="t", model="clip", input=given, budget_id=f"run:{run_id}")
    with pytest.raises(Fault) as caught:
        await tenant.call("CreateRun", asked)
    assert [error.pointer for error in caught.value.errors] == ["/options/budget"]

"""Budgets of cost_quote over its stub."""

from typing import Any

from libs.faults.fault import Fault
from libs.rpc.faulting import faulting
from libs.rpc.values import time_to_proto
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from services.edge.domain import budget_shapes
from services.edge.domain.budgets import BudgetOrder, LimitChange
from services.edge.wire import budgets as wire

TIMEOUT_S = 10.0
CHECK_TIMEOUT_S = 60.0
"""It reads every entry; the ledger itself ends it a little earlier."""


class BudgetsPeer:
    """Implements `ports.Budgets`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = BudgetServiceStub(channel)

    @faulting
    async def page(self, tenant: str, root: str, size: int, token: str) -> tuple[list[budget_shapes.Budget], str]:
        """See the port."""
        request = pb.ListBudgetsRequest(tenant=tenant, root_id=root, page_size=size, page_token=token)
        reply = await self._stub.ListBudgets(request, timeout=TIMEOUT_S)
        return [wire.budget(item) for item in reply.budgets], reply.next_page_token

    @faulting
    async def get(self, budget_id: str) -> budget_shapes.Budget:
        """See the port."""
        reply = await self._stub.GetBudget(pb.GetBudgetRequest(budget_id=budget_id), timeout=TIMEOUT_S)
        return wire.budget(reply.budget)

    async def create(self, order: BudgetOrder) -> budget_shapes.Budget:
        """See the port."""
        try:
            return await self._create(order)
        except Fault as fault:
            raise wire.in_public_words(fault) from None

    @faulting
    async def _create(self, order: BudgetOrder) -> budget_shapes.Budget:
        request = pb.CreateBudgetRequest(budget=wire.declaration(order))
        return wire.budget((await self._stub.CreateBudget(request, timeout=TIMEOUT_S)).budget)

    @faulting
    async def change(self, budget_id: str, change: LimitChange, request_id: str) -> budget_shapes.Budget:
        """See the port."""
        request = pb.ChangeLimitsRequest(
            budget_id=budget_id,
            hard=wire.limit(change.hard, ""),
            soft=wire.limit(change.soft, ""),
            update_mask=wire.mask(change),
            deadline_time=time_to_proto(change.deadline_at),
            reason=change.reason,
            request_id=request_id,
        )
        return wire.budget((await self._stub.ChangeLimits(request, timeout=TIMEOUT_S)).budget)

    @faulting
    async def entries(self, budget_id: str, after: int, size: int) -> list[budget_shapes.BudgetEntry]:
        """See the port."""
        request = pb.ListEntriesRequest(budget_id=budget_id, after_sequence=after, page_size=size)
        reply = await self._stub.ListEntries(request, timeout=TIMEOUT_S)
        return [wire.entry(item) for item in reply.entries]

    @faulting
    async def mismatches(self) -> list[budget_shapes.LedgerMismatch]:
        """See the port."""
        reply = await self._stub.CheckLedger(pb.CheckLedgerRequest(whole=True), timeout=CHECK_TIMEOUT_S)
        return [budget_shapes.LedgerMismatch(item.budget_id, item.message) for item in reply.mismatches]

    @faulting
    async def ping(self) -> None:
        """See the port."""
        await self._stub.ListBudgets(pb.ListBudgetsRequest(page_size=1), timeout=TIMEOUT_S)

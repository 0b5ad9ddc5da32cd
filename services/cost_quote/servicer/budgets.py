"""`BudgetService`: decode, call the use-case, encode."""

from typing import Any

from libs.rpc.batches import check_size, each
from libs.rpc.paging import number_in, page_size
from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceServicer
from services.cost_quote.app.move_holds import MoveHolds
from services.cost_quote.domain.budgets import Budget, ReleaseAsk
from services.cost_quote.domain.ledger import unknown_budget
from services.cost_quote.ports import Budgets
from services.cost_quote.wire import budgets as wire


class BudgetServicer(BudgetServiceServicer):
    """`pointsman.cost_quote.v1.BudgetService`."""

    def __init__(self, budgets: Budgets, holds: MoveHolds) -> None:
        self._budgets = budgets
        self._holds = holds

    async def CreateBudget(self, request: pb.CreateBudgetRequest, context: Any) -> pb.CreateBudgetResponse:
        """Makes a budget, or finds it."""
        budget = await self._budgets.create(wire.declaration_from_proto(request.budget))
        return pb.CreateBudgetResponse(budget=wire.budget_to_proto(budget))

    async def ChangeLimits(self, request: pb.ChangeLimitsRequest, context: Any) -> pb.ChangeLimitsResponse:
        """Changes limits, by a person and with a reason."""
        budget = await self._budgets.change(wire.change_from_proto(request))
        return pb.ChangeLimitsResponse(budget=wire.budget_to_proto(budget))

    async def Hold(self, request: pb.HoldRequest, context: Any) -> pb.HoldResponse:
        """Reserves at every level of a branch, or at none."""
        outcome = await self._holds.take(wire.hold_from_proto(request))
        return wire.held_to_proto(outcome)

    async def BatchHold(self, request: pb.BatchHoldRequest, context: Any) -> pb.BatchHoldResponse:
        """Takes several Holds, each as if alone."""
        check_size(request.requests, "requests")
        outcomes = await each([self._holds.take(wire.hold_from_proto(asked)) for asked in request.requests])
        return pb.BatchHoldResponse(responses=map(wire.held_to_proto, outcomes))

    async def EnlargeHold(self, request: pb.EnlargeHoldRequest, context: Any) -> pb.EnlargeHoldResponse:
        """Lets a Hold hold at least that much money."""
        outcome = await self._holds.enlarge(wire.enlargement_from_proto(request))
        return wire.enlarged_to_proto(outcome)

    async def Settle(self, request: pb.SettleRequest, context: Any) -> pb.SettleResponse:
        """Books what it really cost and frees the rest."""
        return wire.settled_to_proto(await self._holds.settle(wire.settlement_from_proto(request)))

    async def BatchSettle(self, request: pb.BatchSettleRequest, context: Any) -> pb.BatchSettleResponse:
        """Settles several Holds, each as if alone."""
        check_size(request.requests, "requests")
        booked = await each([self._holds.settle(wire.settlement_from_proto(asked)) for asked in request.requests])
        return pb.BatchSettleResponse(responses=map(wire.settled_to_proto, booked))

    async def ReleaseHold(self, request: pb.ReleaseHoldRequest, context: Any) -> pb.ReleaseHoldResponse:
        """Gives back what was reserved."""
        hold = await self._holds.release(ReleaseAsk(request.hold_id, request.reason))
        return pb.ReleaseHoldResponse(hold=wire.hold_to_proto(hold) if hold.budget_id else None)

    async def GetBudget(self, request: pb.GetBudgetRequest, context: Any) -> pb.GetBudgetResponse:
        """One budget."""
        budget = await self._known(request.budget_id, request.tenant)
        return pb.GetBudgetResponse(budget=wire.budget_to_proto(budget))

    async def ListBudgets(self, request: pb.ListBudgetsRequest, context: Any) -> pb.ListBudgetsResponse:
        """Several budgets, parents before children."""
        most = page_size(request.page_size)
        found = await self._budgets.find(request.tenant, request.root_id, number_in(request.page_token), most)
        more = str(found[-1].number) if len(found) == most else ""
        return pb.ListBudgetsResponse(budgets=map(wire.budget_to_proto, found), next_page_token=more)

    async def ListEntries(self, request: pb.ListEntriesRequest, context: Any) -> pb.ListEntriesResponse:
        """The movements of a budget, oldest first."""
        budget = await self._known(request.budget_id)
        found = await self._budgets.entries(budget.id, max(0, request.after_sequence), page_size(request.page_size))
        return pb.ListEntriesResponse(entries=[wire.entry_to_proto(entry, budget.currency) for entry in found])

    async def ListOpenHolds(self, request: pb.ListOpenHoldsRequest, context: Any) -> pb.ListOpenHoldsResponse:
        """Holds that are still held."""
        most = page_size(request.page_size)
        found = await self._budgets.open_holds(request.id_prefix, request.page_token, most)
        more = found[-1].id if len(found) == most else ""
        return pb.ListOpenHoldsResponse(holds=map(wire.hold_to_proto, found), next_page_token=more)

    async def CheckLedger(self, request: pb.CheckLedgerRequest, context: Any) -> pb.CheckLedgerResponse:
        """Whether the ledger is sound."""
        found = await self._budgets.mismatches(whole=request.whole)
        return pb.CheckLedgerResponse(
            mismatches=[budget_pb2.LedgerMismatch(budget_id=item.budget_id, message=item.what) for item in found]
        )

    async def _known(self, budget_id: str, tenant: str = "") -> Budget:
        budget = await self._budgets.get(budget_id)
        if budget is None or tenant not in ("", budget.tenant):
            raise unknown_budget(budget_id)
        return budget

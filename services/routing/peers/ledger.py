"""`Ledger` over `BudgetService`."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.faulting import faulting
from libs.rpc.values import moment_of, money_from_proto, money_to_proto
from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from services.routing.ports.ledger import NoMoney, OpenHold

CHECK_S = 60.0
"""Every entry is read."""


class RemoteLedger:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float) -> None:
        self._stub = BudgetServiceStub(channel)
        self._timeout_s = timeout_s

    async def declare(self, budget: str, tenant: str, cost: Money, reason: str) -> None:
        """See the port."""
        try:
            await self._create(budget, tenant, cost)
        except Fault as fault:
            if fault.code != "already_exists":
                raise
        await self._adjust(budget, cost, reason)

    @faulting
    async def _create(self, budget: str, tenant: str, cost: Money) -> None:
        declared = budget_pb2.Budget(
            id=budget, level="tenant", tenant=tenant, currency=cost.currency, hard=_amounts(cost, 0)
        )
        await self._stub.CreateBudget(pb.CreateBudgetRequest(budget=declared), timeout=self._timeout_s)

    @faulting
    async def _adjust(self, budget: str, cost: Money, reason: str) -> None:
        known = (await self._stub.GetBudget(pb.GetBudgetRequest(budget_id=budget), timeout=self._timeout_s)).budget
        if money_from_proto(known.hard.cost) == cost:
            return
        zero = Money.zero(cost.currency)
        used = (money_from_proto(known.spent.cost) or zero) + (money_from_proto(known.held.cost) or zero)
        named = FieldMask(paths=["hard.cost"])
        new = _amounts(max(cost, used), 0)
        change = pb.ChangeLimitsRequest(budget_id=budget, hard=new, update_mask=named, reason=reason)
        await self._stub.ChangeLimits(change, timeout=self._timeout_s)

    @faulting
    async def hold(self, hold: str, budget: str, cost: Money, attempts: int, subject: str) -> NoMoney | None:
        """See the port."""
        asked = pb.HoldRequest(hold_id=hold, budget_id=budget, amounts=_amounts(cost, attempts), subject=subject)
        answer = await self._stub.Hold(asked, timeout=self._timeout_s)
        return _refusal(answer)

    @faulting
    async def cover(self, hold: str, cost: Money, reason: str) -> NoMoney | None:
        """See the port."""
        asked = pb.EnlargeHoldRequest(hold_id=hold, amounts=_amounts(cost, 0), reason=reason)
        return _refusal(await self._stub.EnlargeHold(asked, timeout=self._timeout_s))

    async def settle(self, hold: str, cost: Money, attempts: int, reason: str) -> None:
        """See the port."""
        try:
            await self._settle(hold, cost, attempts, reason)
        except Fault as fault:
            if fault.code != "not_found":
                raise

    @faulting
    async def _settle(self, hold: str, cost: Money, attempts: int, reason: str) -> None:
        booked = pb.SettleRequest(hold_id=hold, amounts=_amounts(cost, attempts), reason=reason, correct=True)
        await self._stub.Settle(booked, timeout=self._timeout_s)

    @faulting
    async def release(self, hold: str, reason: str) -> None:
        """See the port."""
        await self._stub.ReleaseHold(pb.ReleaseHoldRequest(hold_id=hold, reason=reason), timeout=self._timeout_s)

    @faulting
    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """See the port."""
        asked = pb.ListOpenHoldsRequest(id_prefix=prefix, page_token=after, page_size=most)
        answer = await self._stub.ListOpenHolds(asked, timeout=self._timeout_s)
        return [OpenHold(item.id, moment_of(item.create_time)) for item in answer.holds]

    @faulting
    async def mismatches(self) -> Sequence[tuple[str, str]]:
        """See the port."""
        answer = await self._stub.CheckLedger(pb.CheckLedgerRequest(), timeout=CHECK_S)
        return [(item.budget_id, item.message) for item in answer.mismatches]


def _amounts(cost: Money, attempts: int) -> budget_pb2.Amounts:
    return budget_pb2.Amounts(cost=money_to_proto(cost), attempts=attempts)


def _refusal(answer: pb.HoldResponse | pb.EnlargeHoldResponse) -> NoMoney | None:
    if not answer.HasField("refusal"):
        return None
    told = answer.refusal
    return NoMoney(told.budget_id, told.level, told.dimension, told.message)

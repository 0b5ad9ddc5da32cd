"""`Ledger` over `BudgetService`. Holds that are asked for at once travel in one call, and so do settlements."""

from collections.abc import Awaitable, Sequence
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.faulting import faulting
from libs.rpc.values import moment_of, money_from_proto, money_to_proto
from pointsman.cost_quote.v1 import budget_pb2
from pointsman.cost_quote.v1 import budget_service_pb2 as pb
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from services.routing.peers.batches import Batches
from services.routing.ports.ledger import NoMoney, OpenHold

ADJUSTMENTS = 5
"""How often a limit below what is used is set to just that, while work goes on."""
CHECK_S = 60.0
"""What came since the last look is read; by the first one, every entry."""


def _hold_of(asked: pb.HoldRequest | pb.SettleRequest) -> str:
    return asked.hold_id


class RemoteLedger:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float) -> None:
        self._stub = BudgetServiceStub(channel)
        self._timeout_s = timeout_s
        self._holds: Batches[pb.HoldRequest, NoMoney | None] = Batches(self._hold_all, _hold_of)
        self._settlements: Batches[pb.SettleRequest, None] = Batches(self._settle_all, _hold_of)

    async def declare(
        self, budget: str, tenant: str, currency: str, limit: Money | None, reason: str, changed_at: int = 0
    ) -> Money | None:
        """See the port. One that was made with that limit was changed to it then."""
        declared = False
        try:
            await self._create(budget, tenant, currency, limit)
            declared = True
        except Fault as fault:
            if fault.code != "already_exists":
                raise
        if limit is None:
            return None
        keys = [] if declared else [f"quota:{limit.words()}"]
        keys += [f"quota:{limit.words()}@{changed_at}"] if changed_at else []
        for key in keys:
            stands = await self._adjusted(budget, limit, reason, key=key)
            if stands is not None:
                return stands
        return None

    async def lower(self, budget: str, limit: Money, stands: Money, reason: str) -> Money | None:
        """See the port."""
        return await self._adjusted(budget, limit, reason, stands=stands)

    async def _adjusted(self, budget: str, limit: Money, reason: str, **how: Any) -> Money | None:
        for left in reversed(range(ADJUSTMENTS)):
            try:
                return await self._adjust(budget, limit, reason, **how)
            except Fault as fault:
                if fault.code == "conflict":
                    return None  # that key changed to other limits
                if fault.code != "validation_failed" or not left:
                    raise  # else more was held between the look and the change: what is used now is the least
        return None

    @faulting
    async def _create(self, budget: str, tenant: str, currency: str, limit: Money | None) -> None:
        hard = None if limit is None else _amounts(limit, 0)
        declared = budget_pb2.Budget(id=budget, level="tenant", tenant=tenant, currency=currency, hard=hard)
        await self._stub.CreateBudget(pb.CreateBudgetRequest(budget=declared), timeout=self._timeout_s)

    @faulting
    async def _adjust(
        self, budget: str, cost: Money, reason: str, key: str = "", stands: Money | None = None
    ) -> Money | None:
        known = (await self._stub.GetBudget(pb.GetBudgetRequest(budget_id=budget), timeout=self._timeout_s)).budget
        present = money_from_proto(known.hard.cost)
        if stands is not None and present != stands:
            return None
        if present == cost:
            return cost
        zero = Money.zero(cost.currency)
        used = (money_from_proto(known.spent.cost) or zero) + (money_from_proto(known.held.cost) or zero)
        named = FieldMask(paths=["hard.cost"])
        nearest = max(cost, used)
        if nearest == present:
            return nearest
        hard = _amounts(nearest, 0)
        change = pb.ChangeLimitsRequest(budget_id=budget, hard=hard, update_mask=named, reason=reason, request_id=key)
        after = (await self._stub.ChangeLimits(change, timeout=self._timeout_s)).budget
        return nearest if money_from_proto(after.hard.cost) == nearest else None

    async def hold(self, hold: str, budget: str, cost: Money, attempts: int, subject: str) -> NoMoney | None:
        """See the port."""
        asked = pb.HoldRequest(hold_id=hold, budget_id=budget, amounts=_amounts(cost, attempts), subject=subject)
        return await self._holds.ask(asked)

    @faulting
    async def _hold_all(self, group: Sequence[pb.HoldRequest]) -> Sequence[NoMoney | None]:
        if len(group) == 1:
            return [_refusal(await self._stub.Hold(group[0], timeout=self._timeout_s))]
        asked = pb.BatchHoldRequest(requests=group)
        return list(map(_refusal, (await self._stub.BatchHold(asked, timeout=self._timeout_s)).responses))

    @faulting
    async def cover(self, hold: str, cost: Money, reason: str) -> NoMoney | None:
        """See the port."""
        asked = pb.EnlargeHoldRequest(hold_id=hold, amounts=_amounts(cost, 0), reason=reason)
        return _refusal(await self._stub.EnlargeHold(asked, timeout=self._timeout_s))

    @faulting
    async def limited(self, budget: str) -> bool:
        """See the port."""
        known = (await self._stub.GetBudget(pb.GetBudgetRequest(budget_id=budget), timeout=self._timeout_s)).budget
        hard = known.hard
        money = money_from_proto(hard.cost)
        counted = hard.attempts or hard.review_minutes or (money is not None and money.amount > 0)
        return bool(counted) or known.HasField("deadline_time")

    def settle(self, hold: str, cost: Money, attempts: int, reason: str) -> Awaitable[None]:
        """See the port."""
        booked = pb.SettleRequest(hold_id=hold, amounts=_amounts(cost, attempts), reason=reason, correct=True)
        return self._settlements.begin(booked)

    async def _settle_all(self, group: Sequence[pb.SettleRequest]) -> Sequence[None]:
        try:
            await self._book(group)
        except Fault as fault:
            if fault.code != "not_found" or len(group) > 1:  # of several they are asked again one by one
                raise
        return [None] * len(group)

    @faulting
    async def _book(self, group: Sequence[pb.SettleRequest]) -> None:
        if len(group) == 1:
            await self._stub.Settle(group[0], timeout=self._timeout_s)
        else:
            await self._stub.BatchSettle(pb.BatchSettleRequest(requests=group), timeout=self._timeout_s)

    @faulting
    async def release(self, hold: str, reason: str) -> None:
        """See the port."""
        await self._stub.ReleaseHold(pb.ReleaseHoldRequest(hold_id=hold, reason=reason), timeout=self._timeout_s)

    @faulting
    async def open_holds(self, prefix: str, after: str, most: int) -> Sequence[OpenHold]:
        """See the port."""
        asked = pb.ListOpenHoldsRequest(id_prefix=prefix, page_token=after, page_size=most)
        answer = await self._stub.ListOpenHolds(asked, timeout=self._timeout_s)
        return [
            OpenHold(item.id, moment_of(item.create_time), item.amounts.cost.currency_code) for item in answer.holds
        ]

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

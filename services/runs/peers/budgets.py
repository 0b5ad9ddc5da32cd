"""Budgets over their stub."""

from decimal import Decimal
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.faulting import faulting, faults_from_rpc
from libs.rpc.values import money_from_proto, money_to_proto, time_from_proto
from pointsman.cost_quote.v1 import budget_pb2, budget_service_pb2
from pointsman.cost_quote.v1.budget_service_pb2_grpc import BudgetServiceStub
from services.runs.domain.money import may_spend
from services.runs.domain.plan import Plan, Spec
from services.runs.domain.task_view import Held, HeldMinutes, Level, Refused, Settled

TIMEOUT_S = 10.0
KNOWN = 10_000


class BudgetsPeer:
    """Implements `ports.Budgets`. What was made once by this process is not made again."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = BudgetServiceStub(channel)
        self._made: dict[str, None] = {}

    @faulting
    async def usable(self, budget_id: str, tenant: str) -> bool:
        """See the port."""
        try:
            with faults_from_rpc():
                request = budget_service_pb2.GetBudgetRequest(budget_id=budget_id)
                reply = await self._stub.GetBudget(request, timeout=TIMEOUT_S)
        except Fault as fault:
            if fault.code != "not_found":
                raise
            return False
        return may_spend(reply.budget.tenant, tenant)

    async def make(self, budget_id: str, parent: str, tenant: str, plan: Plan) -> None:
        """See the port."""
        declared = plan.budget
        assert declared is not None, "only a production with a budget makes one"
        hard = budget_pb2.Amounts(attempts=declared.attempts, review_minutes=declared.review_minutes)
        soft = budget_pb2.Amounts(review_minutes=declared.soft_review_minutes)
        if declared.cost is not None:
            hard.cost.CopyFrom(money_to_proto(Money(declared.currency, declared.cost)))
        if declared.soft is not None:
            soft.cost.CopyFrom(money_to_proto(Money(declared.currency, declared.soft)))
        budget = budget_pb2.Budget(
            id=budget_id,
            parent_id=parent,
            level="episode",
            tenant=tenant,
            currency=declared.currency,
            hard=hard,
            soft=soft,
        )
        await self._create(budget)

    async def make_node(self, budget_id: str, parent: str, tenant: str, spec: Spec, currency: str) -> None:
        """See the port."""
        hard = budget_pb2.Amounts()
        if spec.budget.cost is not None:
            hard.cost.CopyFrom(money_to_proto(Money(currency, spec.budget.cost)))
        value_class = budget_pb2.ValueClass.Value(f"VALUE_CLASS_{spec.worth.upper()}")
        budget = budget_pb2.Budget(
            id=budget_id,
            parent_id=parent,
            level="node",
            tenant=tenant,
            currency=currency,
            hard=hard,
            value_class=value_class,
        )
        await self._create(budget)

    @faulting
    async def _create(self, budget: budget_pb2.Budget) -> None:
        if budget.id in self._made:
            return
        await self._stub.CreateBudget(budget_service_pb2.CreateBudgetRequest(budget=budget), timeout=TIMEOUT_S)
        while len(self._made) >= KNOWN:
            del self._made[next(iter(self._made))]
        self._made[budget.id] = None

    @faulting
    async def hold(self, hold_id: str, budget_id: str, cost: Money, attempts: int, subject: str) -> Held | Refused:
        """See the port."""
        amounts = budget_pb2.Amounts(cost=money_to_proto(cost), attempts=attempts)
        reply = await self._hold(hold_id, budget_id, amounts, subject)
        if reply.HasField("refusal"):
            return _refused(reply.refusal)
        return Held(budget_id, cost, attempts, tuple(reply.soft_limit_budget_ids), tuple(reply.soft_budget_ids))

    @faulting
    async def hold_minutes(self, hold_id: str, budget_id: str, minutes: int, subject: str) -> HeldMinutes | Refused:
        """See the port."""
        reply = await self._hold(hold_id, budget_id, budget_pb2.Amounts(review_minutes=minutes), subject)
        if reply.HasField("refusal"):
            return _refused(reply.refusal)
        return HeldMinutes(budget_id, minutes, tuple(reply.soft_limit_budget_ids), tuple(reply.soft_budget_ids))

    async def _hold(self, hold_id: str, budget_id: str, amounts: budget_pb2.Amounts, subject: str) -> Any:
        request = budget_service_pb2.HoldRequest(hold_id=hold_id, budget_id=budget_id, amounts=amounts, subject=subject)
        return await self._stub.Hold(request, timeout=TIMEOUT_S)

    @faulting
    async def standing(self, hold_id: str, budget_id: str) -> Held:
        """See the port."""
        request = budget_service_pb2.EnlargeHoldRequest(hold_id=hold_id)  # by nothing: it is answered as it is
        hold = (await self._stub.EnlargeHold(request, timeout=TIMEOUT_S)).hold
        amount = money_from_proto(hold.amounts.cost)
        assert amount is not None, "a Hold of a branch is of some currency"
        return Held(budget_id, amount, hold.amounts.attempts)

    @faulting
    async def settle(
        self, hold_id: str, cost: Money | None, attempts: int, reason: str, correct: bool = False
    ) -> Settled:
        """See the port."""
        amounts = budget_pb2.Amounts(cost=money_to_proto(cost), attempts=attempts)
        return await self._settle(hold_id, None if cost is None and not attempts else amounts, reason, correct)

    @faulting
    async def settle_minutes(self, hold_id: str, minutes: int, reason: str) -> Settled:
        """See the port."""
        return await self._settle(hold_id, budget_pb2.Amounts(review_minutes=minutes) if minutes else None, reason)

    async def _settle(
        self, hold_id: str, amounts: budget_pb2.Amounts | None, reason: str, correct: bool = False
    ) -> Settled:
        if amounts is None:
            request = budget_service_pb2.ReleaseHoldRequest(hold_id=hold_id, reason=reason)
            await self._stub.ReleaseHold(request, timeout=TIMEOUT_S)
            return Settled()
        settling = budget_service_pb2.SettleRequest(hold_id=hold_id, amounts=amounts, reason=reason, correct=correct)
        reply = await self._stub.Settle(settling, timeout=TIMEOUT_S)
        return Settled(tuple(reply.soft_limit_budget_ids), money_from_proto(reply.beyond.cost))

    @faulting
    async def level(self, budget_id: str) -> Level:
        """See the port."""
        request = budget_service_pb2.GetBudgetRequest(budget_id=budget_id)
        budget = (await self._stub.GetBudget(request, timeout=TIMEOUT_S)).budget
        spent, held = _counted(budget.spent), _counted(budget.held)
        used = {name: spent[name] + held[name] for name in spent}
        deadline = time_from_proto(budget.deadline_time)
        return Level(budget.currency, used, _counted(budget.soft), _counted(budget.hard), deadline, spent)

    @faulting
    async def raise_limit(
        self, budget_id: str, dimension: str, limit: Money | int, reason: str, request_id: str
    ) -> None:
        """See the port."""
        hard = budget_pb2.Amounts()
        if isinstance(limit, Money):
            hard.cost.CopyFrom(money_to_proto(limit))
        else:
            setattr(hard, dimension, limit)
        request = budget_service_pb2.ChangeLimitsRequest(
            budget_id=budget_id,
            hard=hard,
            update_mask=FieldMask(paths=[f"hard.{dimension}"]),  # the other dimensions stay as they are by then
            only_raise=True,
            reason=reason,
            request_id=request_id,
        )
        await self._stub.ChangeLimits(request, timeout=TIMEOUT_S)


def _refused(refusal: budget_pb2.HoldRefusal) -> Refused:
    asked, hard, spent = (_counted(part) for part in (refusal.asked, refusal.hard, refusal.spent))
    fits = all(not hard[name] or spent[name] + asked[name] <= hard[name] for name in asked)
    told = (refusal.budget_id, refusal.level, refusal.dimension, refusal.message, asked)
    return Refused(*told, may_free=fits and refusal.dimension in asked)


def _counted(amounts: budget_pb2.Amounts) -> dict[str, Decimal]:
    cost = money_from_proto(amounts.cost)
    counted = {"attempts": Decimal(amounts.attempts), "review_minutes": Decimal(amounts.review_minutes)}
    return {"cost": cost.amount if cost is not None else Decimal(0), **counted}

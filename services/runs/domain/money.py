"""How much of a node's budget one more try may take, and the order that it becomes (COST-9, RUN-4)."""

from dataclasses import replace
from datetime import datetime

from libs.kernel.money import Money
from services.runs.domain.ending import deadline_of
from services.runs.domain.merging import changed
from services.runs.domain.plan import Plan
from services.runs.domain.run import Node, Order, Run
from services.runs.domain.task_view import Estimate, Quota

OPERATORS_TENANT = "default"
"""Whose the admin key is (AUTH-1)."""

LEDGERS_OWN = ("tenant:", "run:")
"""How the ids begin of budgets that nobody declares."""


def may_spend(owner: str, tenant: str) -> bool:
    """Whether work of the tenant may be paid from a budget of that owner.

    "" is no tenant's: only operators name it, so that one which was made without a thought of tenants is not spent by
    all of them. Budgets of tenants may stand below it.
    """
    return tenant == (owner or OPERATORS_TENANT)


def evades(budget_id: str, quota: Quota | None) -> bool:
    """Whether a budget that a caller names would spend beside a tenant's quota: one of the ledger's own, of another
    period or of another production. An operator's is there because an operator decided so."""
    return quota is not None and budget_id != quota.budget_id and budget_id.startswith(LEDGERS_OWN)


def order_of(plan: Plan, run: Run, node: Node) -> Order:
    """What routing is asked for: a node as it was claimed, or what the caller of a single generation sent, with what
    people have changed since."""
    if plan.single:
        return replace(run.order, input=changed(run.order.input, node.changes)) if node.changes else run.order
    spec = plan.spec(node.id)
    deadline = _sooner(deadline_of(plan, run), _wall_time_over(plan, node))
    return Order(spec.model, node.input, spec.degradation, spec.billing_mode, spec.priority, deadline)


def _wall_time_over(plan: Plan, node: Node) -> datetime | None:
    wall_time = plan.spec(node.id).budget.wall_time
    return node.began_at + wall_time if wall_time is not None and node.began_at is not None else None


def _sooner(left: datetime | None, right: datetime | None) -> datetime | None:
    return min(left, right) if left is not None and right is not None else left or right


def attempts_that_fit(plan: Plan, node: Node, estimate: Estimate) -> tuple[int, Money]:
    """(attempts that the Task may make, what they cost at worst): as many as the node's own limits leave, at least one.

    Whether that one may be is for the ledger to say, which knows the rates and the limits that people have raised.
    """
    assert estimate.worst is not None, "what nobody can price is held by nobody"
    each = Money(estimate.worst.currency, estimate.worst.amount / max(estimate.attempts, 1))
    if plan.single:
        return estimate.attempts, estimate.worst
    budget = plan.spec(node.id).budget
    attempts = min(estimate.attempts, budget.attempts - (node.attempts_made - node.allowance))
    same = plan.budget is not None and plan.budget.currency == each.currency
    if budget.cost is not None and same and each.amount > 0:
        left = budget.cost - (node.cost.amount if node.cost is not None else 0)
        attempts = min(attempts, int(left // each.amount))
    return max(attempts, 1), each * max(attempts, 1)

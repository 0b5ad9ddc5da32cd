"""Create a Run: check what is asked for, then keep it with its first event in one transaction."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.world import World
from libs.telemetry import metrics, names
from libs.telemetry.spans import here
from services.runs.app.check_production import check_production
from services.runs.domain import hearing
from services.runs.domain.money import evades
from services.runs.domain.plan import MAIN, Plan
from services.runs.domain.run import Node, Order, Run, RunState
from services.runs.ports import Budgets, Routing, Runs


async def create_run(
    runs: Runs,
    routing: Routing,
    world: World,
    budgets: Budgets,
    *,
    tenant: str,
    order: Order,
    labels: Mapping[str, str],
    production: Mapping[str, Any] | None = None,
    budget_id: str = "",
    key: str = "",
    fingerprint: str = "",
) -> tuple[Run, bool]:
    """(the Run, whether the key named an earlier one). Raises what routing says of an order it would never serve, and
    `validation_failed` with all faults of a production (RUN-3).

    A key that came before is answered first (IDEM-1): its conflict wins over whatever else is wrong with the order.
    """
    earlier = await runs.find_by_key(tenant, key, fingerprint) if key else None
    if earlier is not None:
        return earlier, True
    run_id, now, parent = world.ids.ulid(), world.clock.now(), ""
    if production is None:
        await routing.validate(tenant, order, run_id=run_id)
        if budget_id:
            await _judge_budget(routing, budgets, budget_id, tenant, now)
        nodes = {MAIN: Node(MAIN, "generate", task_id=world.ids.ulid())}
    else:
        checked = await check_production(routing, budgets, tenant, run_id, production, now)
        plan, parent = checked.plan, checked.parent
        nodes = {spec.id: Node(spec.id, spec.kind.value) for spec in plan.nodes.values()}
        budget_id = await _budget(budgets, f"run:{run_id}", parent, tenant, plan)
    run = Run(
        id=run_id,
        tenant=tenant,
        state=RunState.PENDING,
        order=order,
        nodes=nodes,
        created_at=now,
        labels=labels,
        production=production,
        budget_id=budget_id,
        budget_parent=parent,
        traceparent=here(),
    )
    kept, known = await runs.add(run, hearing.created(run), key, fingerprint, now)
    if not known:
        metrics.PROCESS.counter(names.RUNS_CREATED, model=order.model).inc()
    return kept, known


async def _judge_budget(routing: Routing, budgets: Budgets, budget_id: str, tenant: str, now: datetime) -> None:
    """Fault validation_failed for a budget that the caller of a single generation may not name."""
    if not await budgets.usable(budget_id, tenant):
        raise Fault.invalid(("/options/budget", f"there is no budget {budget_id!r} for this tenant"))
    if evades(budget_id, await routing.quota(tenant, now)):
        told = "is no operator's budget, and the tenant has a quota: leave it out, and the quota pays"
        raise Fault.invalid(("/options/budget", told))


async def _budget(budgets: Budgets, budget_id: str, parent: str, tenant: str, plan: Plan) -> str:
    """The id of the production's own budget, made; "" for one that pays nothing. Fault validation_failed."""
    if plan.budget is None:
        return ""
    try:
        await budgets.make(budget_id, parent or plan.budget.parent, tenant, plan)
    except Fault as fault:
        if fault.retryable:
            raise
        raise Fault.invalid(("/production/budget", fault.message)) from fault
    return budget_id

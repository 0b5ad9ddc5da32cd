"""Create a Run: check what is asked for, then keep it with its first event in one transaction."""

from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.domain import hearing
from services.runs.domain.plan import MAIN, Kind, Plan
from services.runs.domain.reading.production import read_plan
from services.runs.domain.run import Node, Order, Run, RunState
from services.runs.ports import Routing, Runs


async def create_run(
    runs: Runs,
    routing: Routing,
    world: World,
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
    run_id = world.ids.ulid()
    if production is None:
        await routing.validate(tenant, order)
        nodes = {MAIN: Node(MAIN, "generate", task_id=world.ids.ulid())}
    else:
        plan, faults = read_plan(production)
        if plan is None:
            raise Fault.invalid(*faults)
        await _check_models(routing, tenant, plan)
        nodes = {spec.id: Node(spec.id, spec.kind.value) for spec in plan.nodes.values()}
        budget_id = f"run:{run_id}" if plan.budget is not None else ""
    now = world.clock.now()
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
    )
    return await runs.add(run, hearing.created(run), key, fingerprint, now)


async def _check_models(routing: Routing, tenant: str, plan: Plan) -> None:
    """Every model that a production names must be one that its tenant may use; what it is given is known only later."""
    faults: list[tuple[str, str]] = []
    asked: dict[str, str] = {}
    for place, spec in enumerate(plan.nodes.values()):
        made = spec.item if spec.kind is Kind.MAP and spec.item is not None else spec
        if not made.model:
            continue
        if made.model not in asked:
            asked[made.model] = await _why_not(routing, tenant, made.model)
        if asked[made.model]:
            faults.append((f"/production/nodes/{place}/{'node/' if made is not spec else ''}model", asked[made.model]))
    if faults:
        raise Fault.invalid(*faults)


async def _why_not(routing: Routing, tenant: str, model: str) -> str:
    """Why a model cannot be used, or "" if only the input that it was not given is wrong."""
    try:
        await routing.validate(tenant, Order(model, {}))
    except Fault as fault:
        if fault.code in ("model_not_published", "forbidden"):
            return fault.message
        if fault.retryable:
            raise
    return ""

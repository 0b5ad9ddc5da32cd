"""Create a Run: check what is asked for, then keep it with its first event in one transaction."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.domain import hearing
from services.runs.domain.expressions import expressions
from services.runs.domain.plan import MAIN, Kind, Plan, Spec
from services.runs.domain.reading.production import read_plan
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
    run_id = world.ids.ulid()
    if production is None:
        await routing.validate(tenant, order)
        if budget_id and not await budgets.usable(budget_id, tenant):
            raise Fault.invalid(("/options/budget", f"there is no budget {budget_id!r} for this tenant"))
        nodes = {MAIN: Node(MAIN, "generate", task_id=world.ids.ulid())}
    else:
        plan, faults = read_plan(production)
        if plan is None:
            raise Fault.invalid(*faults)
        await _check_models(routing, tenant, plan, [node["id"] for node in production["nodes"]])
        nodes = {spec.id: Node(spec.id, spec.kind.value) for spec in plan.nodes.values()}
        budget_id = await _budget(budgets, f"run:{run_id}", tenant, plan)
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


async def _budget(budgets: Budgets, budget_id: str, tenant: str, plan: Plan) -> str:
    """The id of the production's own budget, made; "" for one that pays nothing. Fault validation_failed."""
    if plan.budget is None:
        return ""
    parent = plan.budget.parent
    if parent and not await budgets.usable(parent, tenant):
        raise Fault.invalid(("/production/budget/parent", f"there is no budget {parent!r} for this tenant"))
    try:
        await budgets.make(budget_id, parent, tenant, plan)
    except Fault as fault:
        if fault.retryable:
            raise
        raise Fault.invalid(("/production/budget", fault.message)) from fault
    return budget_id


async def _check_models(routing: Routing, tenant: str, plan: Plan, declared: Sequence[str]) -> None:
    """Every model must be one that its tenant may use, take what is said of its input, and have a price (RUN-3).

    What expressions will give is known only later: it is judged when a node begins.
    """
    faults: list[tuple[str, str]] = []
    for place, spec in enumerate(plan.nodes[name] for name in declared):
        made = spec.item if spec.kind is Kind.MAP and spec.item is not None else spec
        if made.model:
            pointer = f"/production/nodes/{place}{'/node' if made is not spec else ''}"
            faults += [(f"{pointer}{field}", reason) async for field, reason in _objections(routing, tenant, made)]
    if faults:
        raise Fault.invalid(*faults)


async def _objections(routing: Routing, tenant: str, spec: Spec) -> AsyncIterator[tuple[str, str]]:
    """(field of the node, reason) of all that is wrong already."""
    said = {name: value for name, value in spec.input.items() if not any(expressions(value))}
    order = Order(spec.model, said, spec.degradation, spec.billing_mode)
    try:
        estimate = await routing.validate(tenant, order)
    except Fault as fault:
        if fault.retryable:
            raise
        if fault.code != "validation_failed":
            yield "/model", fault.message
        for error in fault.errors:
            field = error.pointer.removeprefix("/input/").partition("/")[0]
            if error.pointer.startswith("/input/") and field in said:
                yield error.pointer, error.reason
        return
    if estimate.worst is None and not estimate.passing and len(said) == len(spec.input):
        yield "/model", f"{spec.model} has no price: {estimate.reason}"

"""Create a Run: check the order, then keep it with its first event in one transaction."""

from collections.abc import Mapping

from libs.kernel.world import World
from services.runs.domain import engine
from services.runs.domain.run import MAIN, Node, Order, Run, RunState, Usage
from services.runs.ports import Routing, Runs


async def create_run(
    runs: Runs,
    routing: Routing,
    world: World,
    *,
    tenant: str,
    order: Order,
    labels: Mapping[str, str],
    key: str = "",
    fingerprint: str = "",
) -> tuple[Run, bool]:
    """(the Run, whether the key named an earlier one). Raises what routing says of an order it would never serve.

    A key that came before is answered first (IDEM-1): its conflict wins over whatever else is wrong with the order.
    """
    earlier = await runs.find_by_key(tenant, key, fingerprint) if key else None
    if earlier is not None:
        return earlier, True
    await routing.validate(tenant, order)
    now = world.clock.now()
    run = Run(
        id=world.ids.ulid(),
        tenant=tenant,
        state=RunState.PENDING,
        order=order,
        node=Node(MAIN, "generate", task_id=world.ids.ulid()),
        created_at=now,
        usage=Usage(),
        labels=labels,
    )
    after, drafts = engine.created(run)
    return await runs.add(after, drafts, key, fingerprint, now)

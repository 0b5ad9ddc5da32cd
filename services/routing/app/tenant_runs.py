"""Whether a tenant's quotas of Runs leave room (AUTH-2, RUN-1a).

The store tells what was committed; what this process has chosen or let in a moment ago, and nobody has committed yet,
is known here. Other replicas are seen by what they have committed: see decision 26.
"""

from collections.abc import Iterable

from services.routing.app.desk import Desk
from services.routing.domain.catalog import Catalog
from services.routing.domain.task import Task
from services.routing.domain.tenant_quotas import Room, queued_limit, running_limit, too_many_wait


async def room_for(desk: Desk, tasks: Iterable[Task]) -> Room:
    """The room that the quotas of these Tasks' tenants leave. Asks nobody where none of them has one."""
    catalog = await desk.catalog.current()
    limits = {task.request.tenant: running_limit(catalog, task.request.tenant) for task in tasks}
    bound = {tenant: limit for tenant, limit in limits.items() if limit}
    if not bound:
        return Room({}, {})
    return Room.of(bound, [*await desk.store.runs_at_providers(sorted(bound)), *desk.runs.chosen])


async def let_in(desk: Desk, catalog: Catalog, tenant: str, run_id: str) -> None:
    """One more Run of the tenant may wait: however many Tasks it asks about, it is one. Fault quota_exceeded.

    Who asks without an id asks about a Run of its own.
    """
    limit = queued_limit(catalog, tenant)
    if not limit:
        return
    now_s = desk.world.clock.monotonic()
    run_id = run_id or desk.world.ids.ulid()
    if run_id in desk.runs.to_come(tenant, now_s):
        return
    waiting = await desk.store.waiting_runs(tenant, limit)
    to_come = desk.runs.to_come(tenant, now_s)  # another question of this Run may have let it in meanwhile
    if run_id not in to_come and waiting + len(to_come) >= limit:
        raise too_many_wait(tenant, limit)
    desk.runs.let_in(tenant, run_id, now_s)

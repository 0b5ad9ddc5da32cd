"""Tasks for those who ask: one, many, their rounds."""

from collections.abc import AsyncIterator

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.task import TERMINAL_TASKS, Task

WATCH_INTERVAL_S = 0.25


async def get_task(desk: Desk, task_id: str, tenant: str = "") -> Task:
    """The Task. Fault `not_found`, in the same words for a foreign one as for a missing one."""
    task = await desk.store.get(task_id)
    if task is None or (tenant and task.request.tenant != tenant):
        raise Fault.of("not_found", f"task {task_id!r} does not exist")
    return task


async def list_rounds(desk: Desk, task_id: str, tenant: str = "") -> tuple[SelectionRound, ...]:
    """Every selection round, oldest first. Fault `not_found`."""
    await get_task(desk, task_id, tenant)
    return await desk.store.rounds(task_id)


async def watch_task(desk: Desk, task_id: str) -> AsyncIterator[Task]:
    """The Task now and after every change, until it has ended. Fault `not_found`."""
    task = await get_task(desk, task_id)
    yield task
    while task.state not in TERMINAL_TASKS:
        await desk.world.clock.sleep(WATCH_INTERVAL_S)
        seen, task = task.revision, await get_task(desk, task_id)
        if task.revision != seen:
            yield task

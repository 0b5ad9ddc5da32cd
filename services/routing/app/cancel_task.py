"""Asks for an end: a durable flag. The Task's worker acts on it; a success that comes first stands (ATT-8)."""

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.task import Task


async def cancel_task(desk: Desk, task_id: str, reason: str) -> Task:
    """The Task with its flag set; one that has ended is answered as it is. Fault `not_found`."""
    task = await desk.store.ask_cancel(task_id, reason, desk.now())
    if task is None:
        raise Fault.of("not_found", f"task {task_id!r} does not exist")
    desk.bell.ring()
    return task

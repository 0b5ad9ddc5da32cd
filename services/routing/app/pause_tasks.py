"""Holds Tasks from new Attempts, or lets them go on; what providers have is followed all the while (RUN-1a, RUN-8)."""

from collections.abc import Sequence

from services.routing.app.desk import Desk, policy_of
from services.routing.domain.attempts import last_start
from services.routing.ports import TaskQuery


async def pause_tasks(desk: Desk, task_ids: Sequence[str], *, paused: bool) -> None:
    """Set or clear the durable flag. Deadlines and the window for new Attempts go on counting while it is set."""
    if not task_ids:
        return
    if not paused:
        await desk.store.unpause(task_ids, desk.now())
        desk.bell.ring()
        return
    catalog = await desk.catalog.current()
    tasks, _ = await desk.store.find(TaskQuery(task_ids=tuple(task_ids), page_size=len(task_ids)))
    await desk.store.pause({task.id: last_start(task, policy_of(catalog, task)) for task in tasks})

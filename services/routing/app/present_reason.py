"""Why a parked Task waits now: its own last look may be long ago, for the heads of its group look for all (ATT-10)."""

from dataclasses import replace

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.app.gather import gather, look
from services.routing.app.tenant_runs import room_for
from services.routing.domain.decision import Decision, Verdict
from services.routing.domain.selection import select
from services.routing.domain.task import Task

CAPACITY = "capacity:"


async def with_present_reason(desk: Desk, task: Task) -> Task:
    """The Task with the reason that a look at this moment would find. Nothing is reserved, kept or counted.

    One that is not parked has its present reason already. While somebody who is asked is away, the last one stands.
    """
    if not task.parked:
        return task
    try:
        views = await look(desk)
        found = await gather(desk, task, views)
        room = await room_for(desk, [task])
    except Fault:
        return task
    if found.inputs is None:
        return replace(task, waiting_reason=found.missing)
    if wait := room.refusal(task):
        return replace(task, waiting_reason=wait)
    return replace(task, waiting_reason=_reason(task, select(views.seen_by(found.inputs))) or task.waiting_reason)


def _reason(task: Task, decision: Decision) -> str:
    if decision.verdict is Verdict.CHOSEN:
        if task.waiting_reason.startswith(CAPACITY):  # of what binds there a snapshot shows less than a reservation
            return ""
        return f"queue: supply {decision.chosen} has a place; who stands before it in its line goes first"
    if decision.verdict is Verdict.WAIT:
        return decision.waiting_reason
    return f"queue: its next look ends it: {decision.failure_message}"

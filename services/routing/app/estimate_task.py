"""What a Task may cost at worst, told before it is taken into care (COST-9)."""

from libs.faults.fault import Fault
from services.routing.app.desk import Desk, policy_of
from services.routing.app.gather import Views, gather
from services.routing.domain.estimate import Estimate, estimate
from services.routing.domain.task import Task


async def estimate_task(desk: Desk, task: Task) -> Estimate:
    """By the prices in force. `task` need not be kept. Raises nothing: without prices the estimate says why.

    Whoever only asks whether a request is admissible must not be refused because nobody tells prices just now.
    """
    try:
        gathered = await gather(desk, task, Views({}, {}, {}, {}, {}))  # whatever stands in the way now: it may pass
    except Fault as error:
        return await _unpriced(desk, task, f"{error.code}: {error.message}")
    if gathered.inputs is None:
        return await _unpriced(desk, task, gathered.missing)
    return estimate(gathered.inputs)


async def _unpriced(desk: Desk, task: Task, reason: str) -> Estimate:
    permitted = task.request.attempts_within(policy_of(await desk.catalog.current(), task).max_attempts)
    return Estimate(None, permitted, reason)

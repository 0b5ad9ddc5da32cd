"""Writing down what happened: the one path by which a step changes a Task."""

import logging

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.task import Task
from services.routing.ports import Write

PASSING = frozenset({"governance_backend_down", "revision_conflict"})
"""The store is away for a moment, or other writers were in the way (a deadlock): the same write may come again."""
TRIES = 6
FIRST_PAUSE_S = 0.2

log = logging.getLogger(__name__)


async def record_outcome(desk: Desk, write: Write) -> Task:
    """Write what a provider has answered, trying again while the store is away: an answer that was paid for is not lost
    to a moment's absence (SYN-7). Should it stay away, the Task is found again by its state: nothing is sent twice."""
    pause, unheard = FIRST_PAUSE_S, False
    for left in reversed(range(TRIES)):
        try:
            return await desk.store.save(write)
        except Fault as fault:
            if unheard and fault.code == "fenced" and (written := await _written_before(desk, write)):
                return written
            if fault.code not in PASSING or not left:
                raise
            log.warning("task %s: the store does not take its outcome yet: %s", write.before.id, fault.message)
        unheard = True
        await desk.world.clock.sleep(pause)
        pause *= 2
    raise AssertionError("the last try answers or raises")


async def _written_before(desk: Desk, write: Write) -> Task | None:
    """The Task as it stands, if the write was committed by a try whose answer was lost: then what its Attempt held is
    this step's to give back."""
    stored = await desk.store.get(write.before.id)
    if stored is None:
        return None
    ends = {
        (item.id, item.state, item.finished_at) for item in write.after.attempts if item not in write.before.attempts
    }
    ours = ends and ends <= {(item.id, item.state, item.finished_at) for item in stored.attempts}
    return stored if ours else None

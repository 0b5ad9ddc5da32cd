"""One claimed Task, one step: the domain says which, this file says where it is done."""

import logging

from libs.faults.fault import Fault
from libs.telemetry import names
from libs.telemetry.spans import continued
from services.routing.app import follow_attempt, look_back, meters, reconcile_uncertain, settle
from services.routing.app.desk import Desk, policy_of
from services.routing.app.dispatch_task import dispatch_task
from services.routing.domain import transitions
from services.routing.domain.attempts import fault, last_start, window_closed
from services.routing.domain.recovery import Step, next_step
from services.routing.domain.task import Attempt, Task
from services.routing.ports import Write

FENCED = "fenced"
PAUSE_AFTER_A_BUG_S = 5.0

log = logging.getLogger(__name__)


async def perform_step(desk: Desk, task: Task) -> None:
    """Do what is next. Whatever goes wrong, the Task stays findable: given back at once or when its claim lapses."""
    facts = {names.TASK_ID: task.id, names.RUN_ID: task.run_id or None, names.MODEL: task.request.model}
    with continued(task.traceparent, names.SPAN_TASK_ADVANCE, facts | {names.TENANT: task.request.tenant}):
        await _guarded(desk, task)


async def _guarded(desk: Desk, task: Task) -> None:
    try:
        await _perform(desk, task)
    except Fault as error:
        if error.code == FENCED:
            log.info("task %s has a newer owner, epoch %d is dropped", task.id, task.epoch)
            return
        log.warning("task %s: step failed: %s", task.id, error)
        await _put_back(desk, task, error.code)
    except Exception:
        log.exception("task %s: step failed", task.id)
        await _put_back(desk, task, "internal")


async def _perform(desk: Desk, task: Task) -> None:
    catalog = await desk.catalog.current()
    step = next_step(task, policy_of(catalog, task), desk.now())
    if step is Step.SELECT:
        await dispatch_task(desk, task)
    elif step is Step.LOOK_BACK:
        await look_back.look_back(desk, task)
    elif step is Step.HOLD:
        held = transitions.held(task, last_start(task, policy_of(catalog, task)))
        await desk.store.save(Write(task, held, desk.now()))
    elif step in _QUEUED_ENDS:
        await _end_queued(desk, task, step)
    elif task.live is not None:
        await _attend(desk, task, task.live, step)


async def _attend(desk: Desk, task: Task, attempt: Attempt, step: Step) -> None:
    """The live Attempt."""
    if step is Step.POLL:
        await follow_attempt.poll(desk, task, attempt)
    elif step is Step.STOP:
        await follow_attempt.stop(desk, task, attempt)
    elif step is Step.EXPIRE:
        await follow_attempt.expire(desk, task, attempt)
    elif step is Step.DROP:
        gone = fault(
            "lease_expired", "the process that had reserved is gone; nothing was sent", "capacity", "attempt", True
        )
        await settle.fail(desk, task, attempt, gone, sent=False)
    elif step is Step.DOUBT:
        await reconcile_uncertain.doubt(desk, task, attempt)
    elif step is Step.RECONCILE:
        await reconcile_uncertain.reconcile(desk, task, attempt)
    elif step is Step.UNRESOLVE:
        await settle.unresolved(desk, task, attempt)


_QUEUED_ENDS = frozenset({Step.CANCEL, Step.LATE, Step.CLOSE})


async def _end_queued(desk: Desk, task: Task, step: Step) -> None:
    """Nothing is at a provider: end as cancelled, too late, or with the window closed."""
    now = desk.now()
    if step is Step.CANCEL:
        after = transitions.cancelled(task, now)
    else:
        failure = settle.too_late(task) if step is Step.LATE else window_closed(task)
        after = transitions.failed(task, failure, now)
    meters.task_ended(await desk.store.save(Write(task, after, now)))


async def _put_back(desk: Desk, task: Task, code: str) -> None:
    """Let the Task be found again soon. If even that fails, its claim lapses and it is found then."""
    try:
        fresh = await desk.store.get(task.id)
        if fresh is None or fresh.epoch != task.epoch:
            return
        after = transitions.waiting(fresh, f"governance: {code}", desk.in_s(PAUSE_AFTER_A_BUG_S))
        await desk.store.save(Write(fresh, after, desk.now()))
    except Fault as error:
        log.warning("task %s is left to its claim's end: %s", task.id, error)

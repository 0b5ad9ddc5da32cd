"""Takes a request into care: checked at the door, then durable; everything else is the queue's work."""

from dataclasses import dataclass

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app.desk import Desk
from services.routing.domain.admission import admit
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.request import Request
from services.routing.domain.task import Task, TaskState


@dataclass(frozen=True, slots=True)
class Submission:
    """What a caller hands over; `task_id` is the caller's choice and makes it idempotent."""

    task_id: str
    request: Request
    run_id: str = ""
    node_id: str = ""


async def check_task(desk: Desk, submission: Submission) -> None:
    """Permission, model and parameters; creates nothing. Faults as `domain.admission.admit`."""
    await _admitted(desk, submission.request)


async def submit_task(desk: Desk, submission: Submission) -> Task:
    """Keep the Task. A known id is answered with the Task that stands, whatever the catalogue says by now.

    Faults: those of `check_task`; `idempotency_conflict` when the id was used for another request.
    """
    try:
        catalog, model = await _admitted(desk, submission.request)
    except Fault:
        known = await desk.store.get(submission.task_id)
        if known is None:
            raise
    else:
        task = Task(
            id=submission.task_id,
            request=submission.request,
            kind=str(model.kind),
            state=TaskState.QUEUED,
            created_at=desk.now(),
            spent=Money.zero(catalog.currency),
            run_id=submission.run_id,
            node_id=submission.node_id,
            waiting_reason="queue: not yet looked at",
        )
        known = await desk.store.add(task)
    if known.request != submission.request:  # as values: a store may spell 1e16 as 10000000000000000
        raise Fault.of("idempotency_conflict", f"task {submission.task_id!r} was first submitted with another request")
    desk.bell.ring()
    return known


async def _admitted(desk: Desk, request: Request) -> tuple[Catalog, Model]:
    """Admitted by the catalogue that this process knows, or by the newest: what another replica was told a moment ago
    (a model published, a tenant let in) holds here too, and nobody is refused for what is no longer so."""
    known = await desk.catalog.current()
    try:
        return known, admit(known, request)
    except Fault:
        newest = await desk.catalog.newest()
        if newest.revision == known.revision:
            raise
        return newest, admit(newest, request)

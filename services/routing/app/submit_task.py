"""Takes a request into care: checked at the door, then durable; everything else is the queue's work."""

from dataclasses import dataclass, replace
from datetime import datetime

from libs.faults.fault import Fault
from libs.telemetry.spans import here
from services.routing.app.cancel_task import cancel_task
from services.routing.app.desk import Desk
from services.routing.app.estimate_task import estimate_task
from services.routing.app.tenant_runs import let_in
from services.routing.domain.admission import admit
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.doubt import doubt_of
from services.routing.domain.estimate import Estimate
from services.routing.domain.request import Request
from services.routing.domain.task import Task
from services.routing.domain.trial import model_in

WITHDRAWN = "the run was cancelled before it was handed over"


@dataclass(frozen=True, slots=True)
class Submission:
    """What a caller hands over; `task_id` is the caller's choice and makes it idempotent."""

    task_id: str
    request: Request
    run_id: str = ""
    node_id: str = ""
    cancel_requested: bool = False
    """It is to end: whoever hands it over without this, later, is to find it ended."""
    origin_at: datetime | None = None
    """When the work that it belongs to came to be; None = now."""


async def check_task(desk: Desk, submission: Submission) -> Estimate:
    """Permission, model and parameters, the tenant's quota of Runs that wait, and what it may cost; creates nothing.

    Faults as `domain.admission.admit`; quota_exceeded.
    """
    catalog, model = await _admitted(desk, submission.request)
    await let_in(desk, catalog, submission.request.tenant, submission.run_id)
    return await estimate_task(desk, _task(desk, submission, str(model.kind), catalog))


async def submit_task(desk: Desk, submission: Submission) -> Task:
    """Keep the Task. A known id is answered with the Task that stands, whatever the catalogue says by now.

    Faults: those of `check_task`; `idempotency_conflict` when the id was used for another request.
    """
    if submission.cancel_requested:
        return await _take_to_its_end(desk, submission)
    try:
        catalog, model = await _admitted(desk, submission.request)
    except Fault:
        known = await desk.store.get(submission.task_id)
        if known is None:
            raise
    else:
        known = await desk.store.add(_task(desk, submission, str(model.kind), catalog))
        desk.runs.handed_over(submission.request.tenant, submission.run_id)
    return _same(desk, submission, known)


async def _take_to_its_end(desk: Desk, submission: Submission) -> Task:
    """Keep it with its cancel from the first moment on (ATT-8). The catalogue has no say: nothing is sent."""
    catalog = await desk.catalog.current()
    model = model_in(catalog, submission.request.model)
    task = _task(desk, submission, str(model.kind) if model else "", catalog)
    known = await desk.store.add(replace(task, cancel_requested=True, cancel_reason=WITHDRAWN))
    _same(desk, submission, known)
    return known if known.cancel_requested else await cancel_task(desk, known.id, WITHDRAWN)


def _task(desk: Desk, submission: Submission, kind: str, catalog: Catalog) -> Task:
    task = Task.begun(submission.task_id, submission.request, kind, catalog.currency, desk.now())
    doubt = doubt_of(desk.restores, submission.origin_at)
    return replace(task, run_id=submission.run_id, node_id=submission.node_id, doubt=doubt, traceparent=here())


def _same(desk: Desk, submission: Submission, known: Task) -> Task:
    """The Task that stands, if it is the one that was handed over."""
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

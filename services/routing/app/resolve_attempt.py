"""An operator's word on a submission that nobody could clear up (ATT-6)."""

from dataclasses import dataclass, replace

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app import settle
from services.routing.app.desk import Desk
from services.routing.app.reconcile_uncertain import take_up
from services.routing.domain.task import Attempt, AttemptState, Task
from services.routing.ports import Write

ACCEPTED, NOT_ACCEPTED = "accepted", "not_accepted"
TRIES = 20
PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Resolution:
    """`verdict` is `accepted`, with the provider's id of the job, or `not_accepted`."""

    attempt_id: str
    verdict: str
    provider_task_id: str = ""
    comment: str = ""


async def resolve_attempt(desk: Desk, resolution: Resolution) -> Task:
    """The Task after it. Saying the same twice is harmless.

    An uncertain Attempt goes on as accepted or as not accepted. One that has ended as unresolved stays so, and its Task
    stays failed: the word is noted and the cost booked. Faults: `validation_failed`, `not_found`, `conflict` for any
    other Attempt and for a job that another Attempt has, `revision_conflict` when a worker holds the Task all the time.
    """
    _check(resolution)
    for _ in range(TRIES):
        task, attempt = await _find(desk, resolution.attempt_id)
        await _is_nobody_elses(desk, attempt, resolution)
        if attempt.state is AttemptState.UNRESOLVED:
            corrected = await _correct(desk, task, attempt, resolution)
            await settle.settle_funds(desk, corrected)
            return corrected
        if _agrees(attempt, resolution):
            return task
        if attempt.state is not AttemptState.SUBMISSION_UNCERTAIN:
            raise Fault.of("conflict", f"attempt {attempt.id} is {attempt.state}, there is nothing to resolve")
        claimed = await desk.store.claim_one(task.id, desk.worker, desk.now(), desk.in_s(desk.settings.worker_lease_s))
        if claimed is None:
            await desk.world.clock.sleep(PAUSE_S)
        elif claimed.live is not None and claimed.live == attempt:
            await _resolve(desk, claimed, claimed.live, resolution)
            return (await _find(desk, resolution.attempt_id))[0]
        else:  # a worker was faster: what the word was about is no more, and is looked at anew
            await desk.store.save(Write(claimed, claimed, desk.now()))
    raise Fault.of("revision_conflict", f"a worker holds the task of attempt {resolution.attempt_id}; try again")


def _check(resolution: Resolution) -> None:
    if resolution.verdict not in (ACCEPTED, NOT_ACCEPTED):
        raise Fault.invalid(("/resolution", "must be accepted or not_accepted"))
    if resolution.verdict == ACCEPTED and not resolution.provider_task_id:
        raise Fault.invalid(("/provider_task_id", "is required with accepted"))


async def _find(desk: Desk, attempt_id: str) -> tuple[Task, Attempt]:
    task = await desk.store.of_attempt(attempt_id)
    attempt = next((item for item in task.attempts if item.id == attempt_id), None) if task else None
    if task is None or attempt is None:
        raise Fault.of("not_found", f"attempt {attempt_id!r} does not exist")
    return task, attempt


async def _is_nobody_elses(desk: Desk, attempt: Attempt, resolution: Resolution) -> None:
    """One job has one Attempt: two Tasks, perhaps of two tenants, would else end with one result."""
    if resolution.verdict != ACCEPTED:
        return
    holder = await desk.store.of_job(attempt.channel, resolution.provider_task_id)
    if holder not in (None, attempt.id):
        raise Fault.of("conflict", f"job {resolution.provider_task_id} is that of attempt {holder}")


async def _resolve(desk: Desk, task: Task, attempt: Attempt, resolution: Resolution) -> None:
    if resolution.verdict == ACCEPTED:
        await take_up(desk, task, attempt, resolution.provider_task_id)
    else:
        await settle.not_accepted(desk, task, attempt, resolution.comment or "an operator said so")


def _agrees(attempt: Attempt, resolution: Resolution) -> bool:
    """Whether the Attempt already went on as the operator says."""
    if resolution.verdict == ACCEPTED:
        return bool(attempt.provider_task_id) and attempt.provider_task_id == resolution.provider_task_id
    return attempt.state is AttemptState.NOT_ACCEPTED


async def _correct(desk: Desk, task: Task, attempt: Attempt, resolution: Resolution) -> Task:
    if attempt.resolution == resolution.verdict:
        return task
    if attempt.resolution:
        raise Fault.of("conflict", f"attempt {attempt.id} was resolved as {attempt.resolution}")
    taken = resolution.verdict == ACCEPTED
    cost = attempt.quote if taken else Money.zero(attempt.quote.currency)
    word = replace(
        attempt,
        resolution=resolution.verdict,
        cost=cost,
        provider_task_id=resolution.provider_task_id if taken else attempt.provider_task_id,
        late_look_at=attempt.late_look_at if taken else None,
    )
    return await desk.store.correct(word, task.spent + cost)

"""An operator's word on a submission that nobody could clear up (ATT-6).

Laws of this file:
- an id that the provider does not know is not believed: it is asked once, and only its plain "no such job" refuses;
- a word that was a slip is mended by another for as long as polls under the first fail; a job that was seen stays.
"""

import asyncio
from dataclasses import dataclass, replace

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app import settle
from services.routing.app.desk import Desk
from services.routing.app.follow_attempt import connection_of
from services.routing.app.reconcile_uncertain import take_up
from services.routing.domain.task import Attempt, AttemptState, Task
from services.routing.ports import Write

ACCEPTED, NOT_ACCEPTED = "accepted", "not_accepted"
TRIES = 20
PAUSE_S = 0.1
ASK_S = 4.0
"""How long the provider is asked about an id: an operator waits for the answer."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """`verdict` is `accepted`, with the provider's id of the job, or `not_accepted`."""

    attempt_id: str
    verdict: str
    provider_task_id: str = ""
    comment: str = ""


async def resolve_attempt(desk: Desk, resolution: Resolution) -> Task:
    """The Task after it. Saying the same twice is harmless.

    An uncertain Attempt goes on as accepted or as not accepted, and so does one that an earlier word made accepted
    while polls under that id fail. One that has ended as unresolved stays so, and its Task stays failed: the word is
    noted and the cost booked. Where the provider could not be asked about the id, the Task's waiting reason says so.
    Faults: `validation_failed`, also for an id that the provider does not know, `not_found`, `conflict` for any other
    Attempt and for a job that another Attempt has, `revision_conflict` when a worker holds the Task all the time.
    """
    _check(resolution)
    doubt: str | None = None
    for _ in range(TRIES):
        task, attempt = await _find(desk, resolution.attempt_id)
        await _is_nobody_elses(desk, attempt, resolution)
        if doubt is None and resolution.verdict == ACCEPTED and _is_open(attempt) and not _agrees(attempt, resolution):
            doubt = await _doubt(desk, attempt, resolution.provider_task_id)
            continue  # it took a while: who the Task belongs to is looked at anew
        if attempt.state is AttemptState.UNRESOLVED:
            corrected = await _correct(desk, task, attempt, resolution)
            await settle.settle_funds(desk, corrected)
            return corrected
        if _agrees(attempt, resolution):
            return task
        if not _is_open(attempt):
            raise Fault.of("conflict", f"attempt {attempt.id} is {attempt.state}, there is nothing to resolve")
        claimed = await desk.store.claim_one(task.id, desk.worker, desk.now(), desk.in_s(desk.settings.worker_lease_s))
        if claimed is None:
            await desk.world.clock.sleep(PAUSE_S)
        elif claimed.live is not None and claimed.live == attempt:
            await _resolve(desk, claimed, claimed.live, resolution, doubt or "")
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


def _is_open(attempt: Attempt) -> bool:
    """Whether a word may still be said of it: it is uncertain, has ended so without one, or nothing was heard so far
    under the id that an earlier word named."""
    if attempt.state is AttemptState.UNRESOLVED:
        return not attempt.resolution
    slip = attempt.state is AttemptState.ACCEPTED and attempt.resolution == ACCEPTED and attempt.poll_failures > 0
    return slip or attempt.state is AttemptState.SUBMISSION_UNCERTAIN


async def _doubt(desk: Desk, attempt: Attempt, provider_task_id: str) -> str:
    """Why the id could not be looked at just now, empty if it was. Fault `validation_failed` where no job has it."""
    channel, supply = await connection_of(desk, attempt)
    try:
        async with asyncio.timeout(ASK_S):
            await desk.provider.poll(channel, supply, replace(attempt, provider_task_id=provider_task_id))
    except TimeoutError:
        return f"{supply.id} did not answer within {ASK_S:g} s"
    except Fault as error:
        if error.code == "task_lost" or error.metadata.get("reason") == "task_lost":
            text = f"names no job that {supply.id} knows: it answers {provider_task_id!r} with {_words(error)!r}"
            raise Fault.invalid(("/provider_task_id", text)) from error
        return f"{supply.id} could not be asked ({error.code})"
    return ""


def _words(error: Fault) -> str:
    return error.provider_message or error.provider_code or "not found"


async def _resolve(desk: Desk, task: Task, attempt: Attempt, resolution: Resolution, doubt: str) -> None:
    if resolution.verdict == ACCEPTED:
        reason = f"provider: accepted on an operator's word alone, {doubt}; polled again later" if doubt else ""
        said = replace(attempt, resolution=ACCEPTED, poll_failures=0, polls_failing_since=None)
        await take_up(desk, task, said, resolution.provider_task_id, reason)
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

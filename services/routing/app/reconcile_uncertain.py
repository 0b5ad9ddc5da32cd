"""A submission whose outcome nobody knows: ask the provider about it, never for another job (ATT-5, ATT-6)."""

from libs.faults.fault import Fault
from services.routing.app import settle
from services.routing.app.desk import Desk
from services.routing.app.follow_attempt import connection_of
from services.routing.app.listen import silence_began, silent_s
from services.routing.app.look_back import look_at
from services.routing.app.record import record_outcome
from services.routing.domain import transitions
from services.routing.domain.attempts import fault, next_look, next_poll
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.task import Attempt, Task
from services.routing.ports import Reconciled, Write


async def doubt(desk: Desk, task: Task, attempt: Attempt) -> None:
    """Its sender is gone: the bytes may have left, so it is uncertain and never sent again (ATT-5)."""
    text = f"the process that was submitting to {attempt.supply} is gone"
    failure = fault("submission_unknown", text, "unknown", "attempt")
    look = next_look(attempt, desk.now(), desk.chance())
    reason = f"uncertain: {text}, the provider's records will be asked"
    after = transitions.uncertain(task, attempt, failure, reason, look, await silence_began(desk))
    await record_outcome(desk, Write(task, after, desk.now()))
    desk.bell.ring()


async def reconcile(desk: Desk, task: Task, attempt: Attempt) -> None:
    """Ask once, by the way that holds at its Channel. No answer is an answer of its own: not yet."""
    channel, supply = await connection_of(desk, attempt)
    try:
        attempt, found = await _asked(desk, task, attempt, channel, supply)
    except Fault as error:
        await _not_yet(desk, task, attempt, f"{supply.id} did not answer ({error.code})")
        return
    if found.verdict == "accepted" and found.delivered is not None:
        taken = transitions.accepted(task, attempt, found.provider_task_id, desk.now(), desk.now())
        await settle.succeed(desk, task, taken.live or attempt, found.delivered)
    elif found.verdict == "accepted" and found.provider_task_id:
        await take_up(desk, task, attempt, found.provider_task_id)
    elif found.verdict == "not_accepted":
        await settle.not_accepted(desk, task, attempt, found.evidence or "its records do not have it")
    else:
        await _not_yet(desk, task, attempt, found.evidence or "its records cannot tell yet")


async def _asked(
    desk: Desk, task: Task, attempt: Attempt, channel: Channel, supply: Supply
) -> tuple[Attempt, Reconciled]:
    """What is known of it, and the Attempt under the token that it was found by."""
    if not attempt.doubted:
        return attempt, await desk.provider.reconcile(channel, supply, attempt, await silent_s(desk, attempt))
    answer = await look_at(desk, await desk.catalog.at(attempt.catalog_revision), task, attempt)
    return answer.attempt, answer.said


async def take_up(desk: Desk, task: Task, attempt: Attempt, provider_task_id: str, reason: str = "") -> None:
    """The provider has it after all: follow it, from now on, under that id. `reason` says what is not known of it."""
    channel, _ = await connection_of(desk, attempt)
    now = desk.now()
    poll_at = next_poll(attempt, min(channel.poll_interval_s, 0.1), None, now, desk.chance())
    taken = transitions.accepted(task, attempt, provider_task_id, now, poll_at)
    await record_outcome(desk, Write(task, transitions.waiting(taken, reason, poll_at), now))
    desk.bell.ring()


async def _not_yet(desk: Desk, task: Task, attempt: Attempt, text: str) -> None:
    now = desk.now()
    reason = f"uncertain: {text}; asked {attempt.reconcile_count + 1} times"
    since = await silence_began(desk) if attempt.silent_since is None else attempt.silent_since
    asked = transitions.still_uncertain(task, attempt, reason, now, since)
    live = asked.live or attempt
    after = transitions.waiting(asked, reason, next_look(live, now, desk.chance()))
    await desk.store.save(Write(task, after, now))

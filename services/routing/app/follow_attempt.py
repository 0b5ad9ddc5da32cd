"""An Attempt that a provider has: poll it, stop it, or give it up."""

import logging
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from services.routing.app import settle
from services.routing.app.desk import Desk, failure_of
from services.routing.app.record import record_outcome
from services.routing.domain import transitions
from services.routing.domain.attempts import fault, next_poll
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.decision import AlertDraft
from services.routing.domain.late import first_late_look
from services.routing.domain.task import Attempt, Failure, Task
from services.routing.ports import Polled, Write

CANCEL_PAUSE_S = 2.0

log = logging.getLogger(__name__)


async def connection_of(desk: Desk, attempt: Attempt) -> tuple[Channel, Supply]:
    """Channel and Supply as they were when the Attempt began: what is in flight keeps its snapshot (CAT-3)."""
    catalog = await desk.catalog.at(attempt.catalog_revision)
    supply = catalog.supplies[attempt.supply]
    return catalog.channels[supply.channel], supply


async def poll(desk: Desk, task: Task, attempt: Attempt) -> None:
    """Ask where it stands. A poll that fails says nothing about the job and changes nothing but the next poll."""
    channel, supply = await connection_of(desk, attempt)
    try:
        heard = await desk.provider.poll(channel, supply, attempt)
    except Fault as error:
        await _unheard(desk, task, attempt, channel, failure_of(error))
        return
    if heard.state == "succeeded" and heard.delivered is None:
        empty = fault(
            "malformed_reply", f"{supply.id} says that the job succeeded, without a result", "supply", "supply"
        )
        await _unheard(desk, task, attempt, channel, empty)
    elif heard.state == "succeeded" and heard.delivered is not None:
        await settle.succeed(desk, task, attempt, heard.delivered)
    elif heard.state == "failed":
        await settle.fail(desk, task, attempt, heard.failure or _unnamed(supply))
    elif heard.state == "cancelled":
        await _stopped_there(desk, task, attempt, supply)
    else:
        await _still_there(desk, task, attempt, channel, heard)


async def stop(desk: Desk, task: Task, attempt: Attempt) -> None:
    """A cancel was asked for: ask the provider to stop. If it says no, the job is followed to its end (ATT-8)."""
    channel, supply = await connection_of(desk, attempt)
    try:
        stopped, cost = await desk.provider.cancel(channel, supply, attempt)
    except Fault as error:
        pause = CANCEL_PAUSE_S * 2**attempt.cancel_tried
        reason = f"cancel: {error.code} at {supply.id}"
        after = transitions.cancel_tried(task, attempt, False, reason, desk.in_s(pause))
        await record_outcome(desk, Write(task, after, desk.now()))
        return
    if stopped:
        await settle.stopped(desk, task, attempt, cost, None)
        return
    after = transitions.cancel_tried(task, attempt, True, f"cancel: {supply.id} runs it to its end", desk.now())
    await record_outcome(desk, Write(task, after, desk.now()))


async def expire(desk: Desk, task: Task, attempt: Attempt) -> None:
    """No result is wanted any more: try to stop the provider once, then end, whatever it says.

    What was not stopped will be charged: the quote is booked.
    """
    channel, supply = await connection_of(desk, attempt)
    try:
        stopped, reported = await desk.provider.cancel(channel, supply, attempt)
    except Fault as error:
        log.warning("attempt %s was not stopped past its deadline: %s", attempt.id, error)
        stopped, reported = False, None
    cost = reported if stopped else reported or attempt.quote
    late_look = None if stopped else first_late_look(desk.now())
    await settle.stopped(desk, task, attempt, cost, settle.too_late(task), late_look)


async def _still_there(desk: Desk, task: Task, attempt: Attempt, channel: Channel, heard: Polled) -> None:
    after = transitions.polled(task, attempt, heard.state == "running", desk.now())
    at = next_poll(after.live or attempt, channel.poll_interval_s, None, desk.now(), desk.chance())
    await desk.store.save(Write(task, transitions.waiting(after, "", _not_past(task, at)), desk.now()))


async def _unheard(desk: Desk, task: Task, attempt: Attempt, channel: Channel, failure: Failure) -> None:
    now = desk.now()
    since = attempt.polls_failing_since
    if since is not None and now - since >= timedelta(seconds=desk.settings.poll_give_up_s):
        await _give_up(desk, task, attempt, failure)
        return
    reason = f"provider: {failure.code} at {attempt.supply}, polled again later"
    unheard = transitions.poll_failed(task, attempt, reason, now)
    at = next_poll(unheard.live or attempt, channel.poll_interval_s, failure.retry_after_ms, now, desk.chance())
    await desk.store.save(Write(task, transitions.waiting(unheard, reason, _not_past(task, at)), now))


async def _give_up(desk: Desk, task: Task, attempt: Attempt, failure: Failure) -> None:
    text = f"{attempt.supply} did not answer polls for {desk.settings.poll_give_up_s:g} s ({failure.code})"
    lost = fault("provider_timeout", text, "supply", "supply", True)
    charge = f"up to {attempt.quote.words()} is booked for a job that was never heard of again"
    draft = AlertDraft("cost_anomaly", "high", attempt.id, charge, cause=task.id)
    late_look = first_late_look(desk.now())
    await settle.fail(desk, task, attempt, lost, cost=attempt.quote, late_look=late_look, alerts=(draft,))


async def _stopped_there(desk: Desk, task: Task, attempt: Attempt, supply: Supply) -> None:
    """The provider says it was cancelled: by us, or by itself, which is a failure like any other."""
    if task.cancel_requested:
        await settle.stopped(desk, task, attempt, None, None)
        return
    failure = fault("provider_error", f"{supply.id} cancelled the job by itself", "supply", "supply", True)
    await settle.fail(desk, task, attempt, failure)


def _not_past(task: Task, at: datetime) -> datetime:
    return min(at, task.request.deadline) if task.request.deadline else at


def _unnamed(supply: Supply) -> Failure:
    return fault("provider_error", f"{supply.id} says that the job failed, without a reason", "supply", "supply", True)

"""The end of an Attempt: its cost, what follows for the Task, and what is given back."""

import asyncio
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from libs.kernel.figures import moment
from libs.kernel.money import Money
from services.routing.app import meters
from services.routing.app.book_usage import delivery_of, tolerance_of
from services.routing.app.desk import Desk, alerts_of, policy_of, task_link
from services.routing.app.funds import quietly
from services.routing.app.give_back import give_back
from services.routing.app.record import record_outcome
from services.routing.domain import transitions
from services.routing.domain.attempts import (
    Again,
    Final,
    after_failure,
    after_not_accepted,
    after_unsent,
    cost_of,
    cost_of_failure,
    fault,
    outcome_is_told,
    turned_away,
)
from services.routing.domain.catalog import Policy
from services.routing.domain.decision import AlertDraft
from services.routing.domain.drift import drift_alerts
from services.routing.domain.late import first_late_look
from services.routing.domain.task import TERMINAL_TASKS, Attempt, AttemptState, Failure, Result, Task
from services.routing.ports import Delivered, Write


async def succeed(desk: Desk, task: Task, attempt: Attempt, delivered: Delivered) -> None:
    """It delivered. A cancel that was asked for in between has lost the race (ATT-8)."""
    now = desk.now()
    delivery = await delivery_of(desk, task, attempt, delivered)
    drift = drift_alerts(attempt, delivery, tolerance_of(desk.settings))
    ended = transitions.attempt_ended(task, attempt, AttemptState.SUCCEEDED, now, cost=delivery.cost, report=True)
    result = Result(
        artifacts=delivered.artifacts,
        output=delivered.output,
        usage=delivered.usage,
        rule=attempt.rule,
        requested_profile=attempt.requested_profile,
        actual_profile=attempt.actual_profile,
        dropped_inputs=attempt.dropped_inputs,
    )
    await _close(desk, task, transitions.succeeded(ended, result, now), attempt, drift)


async def fail(
    desk: Desk,
    task: Task,
    attempt: Attempt,
    failure: Failure,
    *,
    cost: Money | None = None,
    sent: bool = True,
    late_look: datetime | None = None,
    alerts: tuple[AlertDraft, ...] = (),
) -> None:
    """It failed. `cost` overrides what a failure costs; with `sent` false no byte has left and it does not count.
    `late_look`: it was given up, and is asked about again then."""
    now = desk.now()
    if cost is None:
        cost = Money.zero(attempt.quote.currency)
        if sent and not turned_away(attempt, failure):
            supply = (await desk.catalog.at(attempt.catalog_revision)).supplies.get(attempt.supply)
            cost = cost_of_failure(attempt.quote, bool(supply and supply.charges_on_failure))
    ended = transitions.attempt_ended(
        task,
        attempt,
        AttemptState.FAILED,
        now,
        cost=cost,
        failure=failure,
        report=sent and outcome_is_told(attempt, AttemptState.FAILED, failure),
        counted=sent,
        late_look=late_look,
    )
    if sent:
        verdict = after_failure(ended, await _policy(desk, task, attempt), failure, now)
    else:
        verdict = after_unsent(ended, failure)
    after = follow_up(ended, verdict, f"after {failure.code}", desk)
    await _close(desk, task, after, attempt, alerts)


async def not_accepted(desk: Desk, task: Task, attempt: Attempt, evidence: str) -> None:
    """It is known that the provider did not take it: the next Attempt may follow (ATT-6)."""
    now = desk.now()
    failure = fault("provider_error", f"the provider did not take the job ({evidence})", "supply", "supply", True)
    zero = Money.zero(attempt.quote.currency)
    ended = transitions.attempt_ended(
        task, attempt, AttemptState.NOT_ACCEPTED, now, cost=zero, failure=failure, counted=not attempt.doubted
    )
    verdict: Again | Final = Again()  # of what may never have been sent: the next place is asked, or it is sent at last
    if not attempt.doubted:
        verdict = after_not_accepted(ended, await _policy(desk, task, attempt), failure, now)
    after = follow_up(ended, verdict, "after not_accepted", desk)
    await _close(desk, task, after, attempt)


async def unresolved(desk: Desk, task: Task, attempt: Attempt) -> None:
    """Past the deadline nobody knows: a stable end, an alert, and a possible charge on record (ATT-6, COST-12)."""
    now = desk.now()
    text = f"attempt {attempt.id} at {attempt.supply}: it was not found out whether the job was accepted"
    failure = fault("submission_unresolved", text, "unknown", "attempt")
    ended = transitions.attempt_ended(
        task, attempt, AttemptState.UNRESOLVED, now, cost=None, failure=failure, late_look=first_late_look(now)
    )
    charge = f"up to {attempt.quote.words()} may have been charged at {attempt.supply}"
    drafts = (
        AlertDraft("submission_unresolved", "critical", attempt.id, text, cause=task.id),
        AlertDraft("cost_anomaly", "high", attempt.id, charge, cause=task.id),
    )
    await _close(desk, task, transitions.failed(ended, failure, now), attempt, drafts)


async def stopped(
    desk: Desk,
    task: Task,
    attempt: Attempt,
    cost: Money | None,
    failure: Failure | None,
    late_look: datetime | None = None,
) -> None:
    """The provider stopped it: the Task ends as cancelled, or with `failure` where that was the reason to stop.
    `late_look`: it was not stopped and is followed no more; it is asked about again then."""
    now = desk.now()
    catalog = await desk.catalog.at(attempt.catalog_revision)
    supply = catalog.supplies.get(attempt.supply)
    booked = cost_of_failure(attempt.quote, bool(supply and supply.charges_on_failure))
    if cost is not None:
        booked = cost_of(attempt.quote, cost, catalog.fx)
    ended = transitions.attempt_ended(
        task, attempt, AttemptState.CANCELLED, now, cost=booked, failure=failure, late_look=late_look
    )
    after = transitions.failed(ended, failure, now) if failure else transitions.cancelled(ended, now)
    await _close(desk, task, after, attempt)


def follow_up(ended: Task, verdict: Again | Final, reason: str, desk: Desk) -> Task:
    """The Task after an Attempt has ended without a result: cancelled, too late, again, or failed."""
    now = desk.now()
    if ended.cancel_requested:
        return transitions.cancelled(ended, now)
    if ended.request.deadline is not None and now >= ended.request.deadline:
        return transitions.failed(ended, too_late(ended), now)
    if isinstance(verdict, Again):
        return transitions.requeued(ended, f"retry: {reason}", now + timedelta(seconds=verdict.pause_s))
    return transitions.failed(ended, verdict.failure, now)


def too_late(task: Task) -> Failure:
    """The fault of a Task whose deadline has passed."""
    deadline = moment(task.request.deadline) if task.request.deadline else ""
    return fault("deadline_exceeded", f"no result by the deadline {deadline}", "unknown")


async def _policy(desk: Desk, task: Task, attempt: Attempt) -> Policy:
    """The policy in force. While it cannot be read, the one this Attempt was made under: the answer that is being
    written down must not wait for it."""
    try:
        return policy_of(await desk.catalog.current(), task)
    except Fault:
        return policy_of(await desk.catalog.at(attempt.catalog_revision), task)


async def _close(desk: Desk, before: Task, after: Task, attempt: Attempt, drafts: tuple[AlertDraft, ...] = ()) -> None:
    """Write the end and give back, even when the step is ended meanwhile (CAP-8): what was written is released too."""
    await asyncio.shield(desk.errands.begin(_write_the_end(desk, before, after, attempt, drafts)))


async def _write_the_end(
    desk: Desk, before: Task, after: Task, attempt: Attempt, drafts: tuple[AlertDraft, ...]
) -> None:
    alerts = alerts_of(desk, drafts, task_link(after))
    saved = await record_outcome(desk, Write(before, after, desk.now(), alerts=alerts))
    ended = next(item for item in saved.attempts if item.id == attempt.id)
    meters.attempt_ended(ended)
    meters.task_ended(saved)
    await give_back(desk, ended, saved.result.usage if saved.result else {})
    await settle_funds(desk, saved)


async def settle_funds(desk: Desk, task: Task) -> None:
    """Book what an ended Task has cost; a failure is made up for later."""
    if task.state in TERMINAL_TASKS:
        await quietly(lambda: desk.funds.settle_task(task), f"task {task.id}")

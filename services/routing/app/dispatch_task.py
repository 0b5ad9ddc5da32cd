"""One queued Task: have it decided and reserved, commit the intent, hand it over to be submitted (SEL-13..17)."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import quote

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.routing.app import meters
from services.routing.app.desk import Desk, alerts_of, failure_of, policy_of, task_link
from services.routing.app.give_back import release
from services.routing.app.settle import settle_funds
from services.routing.app.submit_attempt import submit_attempt
from services.routing.app.turn import Placed, place
from services.routing.domain import tenant_quotas, transitions
from services.routing.domain.attempts import fault, last_start
from services.routing.domain.availability import gate_in_words
from services.routing.domain.decision import AlertDraft, Decision, HealthView, Inputs, Verdict
from services.routing.domain.doubt import next_number, token_of
from services.routing.domain.lengths import as_made
from services.routing.domain.rounds import RoundOutcome, make_round, round_key
from services.routing.domain.task import Attempt, AttemptState, Task
from services.routing.ports import Refused, Reserved, Write
from services.routing.ports.alerts import Alert
from services.routing.ports.pausing import PAUSED


async def dispatch_task(desk: Desk, task: Task) -> None:
    """Bring a claimed, queued Task as far as it goes now: submitted, waiting with its reason, or failed."""
    try:
        await _dispatch(desk, task)
    finally:
        desk.runs.leave(task)


async def _dispatch(desk: Desk, task: Task) -> None:
    for _ in range(desk.settings.rounds_per_step):
        try:
            placed = await place(desk, task)
        except Fault as error:
            await _cannot_decide(desk, task, error)
            return
        if placed.refused is not None:
            before, task = task.round_key, await _record_refusal(desk, task, placed, placed.refused)
            if task.round_key == before:
                break  # the same gate again: no snapshot shows it, so another look at once would find the same
            continue
        if placed.lease is not None:
            await _begin(desk, task, placed, placed.lease)
        else:
            await _rest(desk, task, placed)
        return
    catalog = await desk.catalog.current()
    await _wait(desk, task, task.waiting_reason, last_start(task, policy_of(catalog, task)))


async def _begin(desk: Desk, task: Task, placed: Placed, lease: Reserved) -> None:
    """One commit: the round, the Attempt and the intent to submit (SEL-14, ATT-5). Then, with no transaction open, the
    provider (SEL-15)."""
    inputs, decision = placed.gathered.inputs, placed.decision
    assert inputs is not None  # a lease is only taken for a decision over inputs
    now = desk.now()
    if now >= last_start(task, inputs.policy):
        await release(desk, lease.lease_id)  # its turn came too late (ATT-3); the next step says how it ends
        await _wait(desk, task, task.waiting_reason, now)
        return
    if not await _funded(desk, task, placed, lease):
        return
    attempt = _attempt(task, placed, inputs, lease, now)
    counted = replace(task, spent=inputs.spent)  # in the currency of the quote, whose cost will be added to it
    deadline = now + timedelta(seconds=inputs.policy.uncertain_deadline_s)
    after = _with_round(transitions.submitting(counted, attempt, now, deadline), decision)
    saved_round = make_round(task.id, after.rounds, inputs, decision, RoundOutcome.RESERVED)
    began, until = desk.world.clock.monotonic(), desk.in_s(desk.settings.worker_lease_s)
    alerts = _alerts(desk, task, decision)
    try:
        saved = await desk.store.save(Write(task, after, now, (saved_round,), alerts, until=until, unless_stopped=True))
    except (Exception, asyncio.CancelledError) as error:
        await release(desk, lease.lease_id)
        if isinstance(error, Fault) and error.code == "cancelled":
            await _cancelled_meanwhile(desk, task)
            return
        if isinstance(error, Fault) and error.metadata == PAUSED:
            await _paused_meanwhile(desk, task, last_start(task, inputs.policy))
            return
        raise
    meters.submitted(task, attempt, now)
    if task.parked:
        desk.usher.freed()  # where it found a place the next one may
    if desk.world.clock.monotonic() - began > desk.settings.worker_lease_s / 2:
        return  # this process stood still: somebody else may own the Task now, and what was not sent is not sent
    intent = next(item for item in saved.attempts if item.id == attempt.id)
    await submit_attempt(desk, saved, intent, inputs.channels[attempt.channel], inputs.supplies[attempt.supply])


async def _funded(desk: Desk, task: Task, placed: Placed, lease: Reserved) -> bool:
    """Whether there is money for it (COST-9): else the Task ends, or waits for a ledger that does not answer."""
    inputs, decision = placed.gathered.inputs, placed.decision
    assert inputs is not None  # a lease is only taken for a decision over inputs
    try:
        await desk.funds.for_task(await desk.catalog.current(), task, inputs, decision)
    except (Exception, asyncio.CancelledError) as error:
        await release(desk, lease.lease_id)
        if not isinstance(error, Fault):
            raise
        if error.code != "budget_exhausted":
            await _cannot_decide(desk, task, error)
            return False
        after = _with_round(task, decision)
        kept = make_round(task.id, after.rounds, inputs, decision, RoundOutcome.FAILED, error.message)
        now, budget = desk.now(), error.metadata.get("budget", "")
        draft = AlertDraft("budget_hard_limit", "medium", budget, error.message, cause=task.id)
        link = f"/v1/operator/budgets/{quote(budget, safe='')}"
        alerts = alerts_of(desk, (draft,), link) if budget else ()  # else its Hold has gone: no limit refused it
        saved = await desk.store.save(
            Write(task, transitions.failed(after, failure_of(error), now), now, (kept,), alerts)
        )
        meters.task_ended(saved)
        if task.attempts:  # what the earlier ones left of its Hold is free again
            await settle_funds(desk, saved)
        return False
    return True


def _attempt(task: Task, placed: Placed, inputs: Inputs, lease: Reserved, now: datetime) -> Attempt:
    decision = placed.decision
    supply = inputs.supplies[decision.chosen]
    quote = inputs.quotes[supply.id]
    amount = quote.amount
    assert amount is not None  # an unpriced Supply is never chosen (COST-4)
    return Attempt(
        id=placed.attempt_id,
        task_id=task.id,
        number=len(task.attempts) + 1,
        supply=supply.id,
        channel=supply.channel,
        state=AttemptState.RESERVED,
        client_token=token_of(task, next_number(task)),
        epoch=task.epoch,
        round=task.rounds + 1,
        quote=Money(inputs.currency, amount),
        lease_id=lease.lease_id,
        price_rule=quote.rule_id,
        price_version=quote.rule_version,
        quote_kind=quote.kind,
        channel_epoch=inputs.channel_health.get(supply.channel, HealthView()).epoch,
        supply_epoch=inputs.supply_health.get(supply.id, HealthView()).epoch,
        catalog_revision=inputs.catalog_revision,
        input=dict(as_made(supply, decision.input)),
        reserved_at=now,
        rule=decision.rule,
        requested_profile=decision.requested_profile,
        actual_profile=decision.actual_profile,
        dropped_inputs=decision.dropped_inputs,
    )


async def _record_refusal(desk: Desk, task: Task, placed: Placed, refused: Refused) -> Task:
    """SEL-17: the round stays, and another one follows with fresh snapshots. An equal one is not kept again."""
    inputs = placed.gathered.inputs
    assert inputs is not None  # only a decision over inputs is reserved
    note = gate_in_words(refused.level, refused.gate, refused.used, refused.limit, refused.retry_at)
    now, until = desk.now(), desk.in_s(desk.settings.worker_lease_s)
    key = f"{round_key(placed.decision)} {refused.level} {refused.gate}"
    waiting = transitions.waiting(replace(task, round_key=key), f"capacity: {note}", now)
    if key == task.round_key:
        return await desk.store.save(Write(task, waiting, now, until=until))
    after = replace(waiting, rounds=task.rounds + 1)
    kept = make_round(task.id, after.rounds, inputs, placed.decision, RoundOutcome.REFUSED, note)
    return await desk.store.save(Write(task, after, now, (kept,), until=until))


async def _rest(desk: Desk, task: Task, placed: Placed) -> None:
    """Nobody was chosen: wait with the reason, or fail with the code."""
    inputs, decision = placed.gathered.inputs, placed.decision
    if inputs is None:
        policy = policy_of(await desk.catalog.current(), task)
        await _wait(desk, task, decision.waiting_reason, last_start(task, policy))
        return
    now = desk.now()
    if decision.verdict is Verdict.FAIL:
        text = decision.failure_message or decision.failure_code
        base = Fault.of(decision.failure_code, text)
        failure = fault(base.code, text, base.category.value, base.scope.value, base.retryable)
        after, outcome = transitions.failed(_with_round(task, decision), failure, now), RoundOutcome.FAILED
    else:
        until = _next_look(desk, task, inputs, decision)
        after = transitions.waiting(_with_round(task, decision), decision.waiting_reason, until)
        outcome = RoundOutcome.WAITING
    if outcome is RoundOutcome.WAITING and task.round_key == after.round_key:
        # The same answer as the last time: history gains nothing from one more round a second.
        again = transitions.waiting(task, after.waiting_reason, until)
        await _put(desk, Write(task, again, now))
        return
    kept = make_round(task.id, after.rounds, inputs, decision, outcome)
    await _put(desk, Write(task, after, now, (kept,), _alerts(desk, task, decision)))


async def _wait(desk: Desk, task: Task, reason: str, until: datetime) -> None:
    after = transitions.waiting(task, reason, until)
    if reason.startswith(tenant_quotas.REASON):
        after = replace(after, round_key=tenant_quotas.group_of(task))
    await _put(desk, Write(task, after, desk.now()))


async def _put(desk: Desk, write: Write) -> None:
    """Write it, and let the usher know of one more that waits."""
    saved = await desk.store.save(write)
    meters.task_ended(saved)
    if saved.parked:
        desk.usher.parked(saved)


async def _cannot_decide(desk: Desk, task: Task, error: Fault) -> None:
    """Whoever would be asked does not answer: nobody is admitted, the Task waits (CAP-12)."""
    if error.code in ("fenced", "cancelled"):
        raise error
    pause = min((error.retry_after_ms or 1000) / 1000, desk.settings.health_look_s)
    await _wait(desk, task, f"governance: {error.code}: {error.message}", desk.in_s(pause))


async def _cancelled_meanwhile(desk: Desk, task: Task) -> None:
    """A cancel came between the decision and the intent: nothing was sent, nothing will be (ATT-8)."""
    now = desk.now()
    asked = replace(task, cancel_requested=True)
    meters.task_ended(await desk.store.save(Write(asked, transitions.cancelled(asked, now), now)))


async def _paused_meanwhile(desk: Desk, task: Task, until: datetime) -> None:
    """A pause came between the decision and the intent: nothing was sent (RUN-1a)."""
    asked = replace(task, paused=True)
    await desk.store.save(Write(asked, transitions.held(asked, until), desk.now()))


def _next_look(desk: Desk, task: Task, inputs: Inputs, decision: Decision) -> datetime:
    """When a waiting Task looks by itself: a parked one only when its time for new Attempts is over."""
    at = last_start(task, inputs.policy)
    if transitions.waiting(task, decision.waiting_reason, at).parked:
        return max(inputs.now, at)
    ends = [at, desk.in_s(desk.settings.health_look_s * (0.9 + 0.1 * desk.chance()))]
    if decision.retry_at is not None:  # a moment of another's clock: one that is past here must not make a busy loop
        ends.append(max(decision.retry_at, desk.in_s(desk.settings.waiting_look_s)))
    return max(inputs.now, min(ends))


def _with_round(task: Task, decision: Decision) -> Task:
    return replace(task, rounds=task.rounds + 1, round_key=round_key(decision))


def _alerts(desk: Desk, task: Task, decision: Decision) -> tuple[Alert, ...]:
    return alerts_of(desk, decision.alerts, task_link(task))

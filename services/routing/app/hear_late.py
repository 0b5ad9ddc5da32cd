"""Asks providers about jobs whose Attempts ended by our own timeout, and books what they say (ATT-6, COST-12)."""

import asyncio
import logging

from libs.faults.fault import Fault
from services.routing.app.desk import Desk, alerts_of, task_link
from services.routing.app.follow_attempt import connection_of
from services.routing.app.listen import silent_s
from services.routing.app.settle import settle_funds
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.late import Said, booked, heard, late_alerts, taken_after_all
from services.routing.domain.task import TERMINAL_TASKS, Attempt
from services.routing.ports import Polled, Reconciled, Write

BATCH = 20
ENDS = frozenset({"succeeded", "failed", "cancelled"})

log = logging.getLogger(__name__)


async def hear_late(desk: Desk) -> bool:
    """Ask about those that are due. True when there may be more.

    Each has its next look before it is asked about: whatever happens here, it is asked again.
    """
    due = await desk.store.take_late(desk.now(), BATCH)
    answers = await asyncio.gather(*(_ask(desk, attempt) for attempt in due), return_exceptions=True)
    for attempt, answer in zip(due, answers, strict=True):
        if isinstance(answer, BaseException):
            log.warning("attempt %s is asked about later: %s", attempt.id, answer)
    return len(due) == BATCH


async def _ask(desk: Desk, attempt: Attempt) -> None:
    channel, supply = await connection_of(desk, attempt)
    if not attempt.provider_task_id:
        found = await _looked_up(desk, channel, supply, attempt)
        if found.verdict == "not_accepted":
            await _hear(desk, attempt, ("not_accepted", None, (), None))
            return
        if found.verdict != "accepted" or not found.provider_task_id:
            return
        taken = taken_after_all(attempt, found.provider_task_id)
        if not await _book(desk, attempt, taken):
            return
        attempt = taken
    await _poll(desk, attempt, channel, supply)


async def _looked_up(desk: Desk, channel: Channel, supply: Supply, attempt: Attempt) -> Reconciled:
    """Nothing is sent again for what may never have been sent at all."""
    silence_s = await silent_s(desk, attempt)
    if attempt.doubted:
        return await desk.provider.look_up(channel, supply, attempt, attempt.reserved_at or desk.now(), silence_s)
    return await desk.provider.reconcile(channel, supply, attempt, silence_s)


async def _poll(desk: Desk, attempt: Attempt, channel: Channel, supply: Supply) -> None:
    told = await desk.provider.poll(channel, supply, attempt)
    if told.state in ENDS and not (told.state == "succeeded" and told.delivered is None):
        await _hear(desk, attempt, _said(told))


def _said(told: Polled) -> Said:
    if told.delivered is not None:
        return told.state, told.delivered.reported_cost, told.delivered.artifacts, None
    return told.state, None, (), told.failure


async def _hear(desk: Desk, attempt: Attempt, said: Said) -> None:
    catalog = await desk.catalog.at(attempt.catalog_revision)
    supply = catalog.supplies.get(attempt.supply)
    after = heard(attempt, said, desk.now(), bool(supply and supply.charges_on_failure), catalog.fx)
    await _book(desk, attempt, after)


async def _book(desk: Desk, before: Attempt, after: Attempt) -> bool:
    """Write the word down; False where somebody else spoke first, or a worker holds the Task just now: the next look
    books it then. A Task that goes on is written under a claim, so that no worker's write undoes it."""
    task = await desk.store.of_attempt(before.id)
    if task is None:
        return False
    alerts = alerts_of(desk, late_alerts(after), task_link(task))
    if task.state in TERMINAL_TASKS:
        corrected = booked(task, before, after)
        if not await desk.store.book_late(corrected, before, after, alerts):
            return False
        await settle_funds(desk, corrected)
        return True
    claimed = await desk.store.claim_one(task.id, desk.worker, desk.now(), desk.in_s(desk.settings.worker_lease_s))
    if claimed is None:
        return False
    known = next(item for item in claimed.attempts if item.id == before.id)
    spoken = known != before
    written = claimed if spoken else booked(claimed, before, after)
    try:
        await desk.store.save(Write(claimed, written, desk.now(), alerts=() if spoken else alerts))
    except Fault as fault:
        log.warning("attempt %s: its late word is booked later: %s", before.id, fault)
        return False
    return not spoken

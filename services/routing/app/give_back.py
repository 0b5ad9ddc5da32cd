"""What an ended Attempt gives back: its slot to capacity, its outcome to health. Neither may hurt the result."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.feedback import SILENT, Feedback, feedback_of
from services.routing.domain.task import Attempt

log = logging.getLogger(__name__)


async def give_back(desk: Desk, attempt: Attempt, usage: Mapping[str, Any]) -> None:
    """Release the slot, with what the end says of pace and tokens, and tell health. Survives cancellation (CAP-8);
    failures are logged, the TTL and the tick of `tell_outcomes` make up for them."""
    await asyncio.shield(desk.errands.begin(_give_back(desk, attempt, feedback_of(attempt, usage))))


async def release(desk: Desk, lease_id: str) -> None:
    """Release one slot that no Attempt came to hold; survives cancellation like `give_back`."""
    await asyncio.shield(desk.errands.begin(_release(desk, lease_id, SILENT)))


async def tell_health(desk: Desk, attempt: Attempt) -> Fault | None:
    """Tell one outcome; None once health has acknowledged it, else why it did not."""
    dispatched, observed = attempt.submitted_at, attempt.finished_at
    if dispatched is None or observed is None:
        return None  # nothing was sent or nothing has ended: there is nothing to tell
    try:
        await desk.health.report(attempt, attempt.failure, dispatched, observed)
    except Fault as fault:
        log.warning("attempt %s: health did not take its outcome: %s", attempt.id, fault)
        return fault
    return None


async def _give_back(desk: Desk, attempt: Attempt, feedback: Feedback) -> None:
    if attempt.lease_id:
        await _release(desk, attempt.lease_id, feedback)
    if attempt.report_pending and await tell_health(desk, attempt) is None:
        await _acknowledge(desk, attempt)


async def _release(desk: Desk, lease_id: str, feedback: Feedback) -> None:
    try:
        await desk.capacity.release(lease_id, feedback)
    except Fault as fault:
        log.warning("lease %s was not released and is left to its time to live: %s", lease_id, fault)
    desk.usher.freed()


async def _acknowledge(desk: Desk, attempt: Attempt) -> None:
    try:
        await desk.store.reported((attempt.id,))
    except Fault as fault:
        log.warning("attempt %s: told to health, but not noted; it will be told again: %s", attempt.id, fault)

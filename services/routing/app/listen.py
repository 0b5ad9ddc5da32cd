"""Since when, and for how long, nothing is known of a submission: what absence in a provider's records is judged by."""

import logging

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.silence import began, lasted_s
from services.routing.domain.task import Attempt

log = logging.getLogger(__name__)


async def silence_began(desk: Desk, sent_at: float | None = None) -> int | None:
    """The pulse from which it counts: now, or earlier for who has sent it himself, at `sent_at` of his monotonic clock.
    None while the store does not answer: it counts from the first look on."""
    try:
        pulse = await desk.store.pulse()
    except Fault as fault:
        log.warning("the silence of the records counts later: %s", fault.message)
        return None
    return began(pulse, 0.0 if sent_at is None else desk.world.clock.monotonic() - sent_at)


async def silent_s(desk: Desk, attempt: Attempt) -> float:
    """Seconds for which the records could have told at least. Of what another life of the database may have sent it
    counts from when that was noticed last."""
    since = attempt.silent_since
    if attempt.doubted:
        since = max((restore.pulse for restore in await desk.store.restores()), default=since)
    return lasted_s(since, await desk.store.pulse())

"""Tells health what it has not acknowledged yet: a durable debt of each ended Attempt (HLT-13)."""

from services.routing.app.desk import Desk
from services.routing.app.give_back import tell_health

BATCH = 100


async def tell_outcomes(desk: Desk) -> bool:
    """Tell the oldest ones, until one is not taken. True when there may be more."""
    told = []
    owed = await desk.store.unreported(BATCH)
    for attempt in owed:
        if not await tell_health(desk, attempt):
            break
        told.append(attempt.id)
    if told:
        await desk.store.reported(told)
    return len(told) == BATCH

"""Tells health what it has not acknowledged yet: a durable debt of each ended Attempt (HLT-13)."""

from libs.faults.registry import Category
from services.routing.app.desk import Desk
from services.routing.app.give_back import tell_health

BATCH = 100


async def tell_outcomes(desk: Desk) -> bool:
    """Tell the oldest ones, until health is away. True when there may be more.

    One that health refuses for itself (of a Supply that it never heard of) does not hold up those behind it.
    """
    told = []
    owed = await desk.store.unreported(BATCH)
    for attempt in owed:
        refused = await tell_health(desk, attempt)
        if refused is None:
            told.append(attempt.id)
        elif refused.category is not Category.REQUEST:
            break
    if told:
        await desk.store.reported(told)
    return len(told) == BATCH

"""Keeps the slots of running work: one batched renewal for every Attempt that has not ended, whoever submitted it.

The holder is `routing`, not a process: after a restart any replica goes on renewing. That is safe because a lease is
only authority to occupy a slot; authority to write about a Task is the claim's epoch, and that is fenced (ATT-7).
"""

import logging

from services.routing.app.desk import Desk

BATCH = 500

log = logging.getLogger(__name__)


async def keep_leases(desk: Desk) -> None:
    """Renew them all. A lost lease is told: the job goes on at its provider, its slot is no longer counted."""
    leases = await desk.store.live_leases()
    for start in range(0, len(leases), BATCH):
        lost = await desk.capacity.renew(leases[start : start + BATCH])
        if lost and (lost := lost.intersection(await desk.store.live_leases())):  # else they were given back meanwhile
            log.warning("%d leases of running attempts have lapsed: %s", len(lost), ", ".join(sorted(lost)[:10]))

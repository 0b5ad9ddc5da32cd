"""Notices that the database was put back to a backup, or is told so, and puts into doubt what may have been sent since.

Laws of this file:
- before anything is sent by this process, the life that the database remembers is compared with the mark beside it; the
  mark goes on with every beat, and is written before the first dispatch: a backup that was taken of a stopped stack is
  noticed always, one of a running stack from the next beat on;
- who is told of the same backup again, by any process at any time, changes nothing.
"""

import logging
from collections.abc import Sequence
from datetime import datetime

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.domain.doubt import SLACK, Life, Restore, was_put_back
from services.routing.ports.restoring import Mark

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""How long a start waits before it asks a database again that does not answer."""


async def declare_restored(desk: Desk, backup_at: datetime) -> int:
    """An operator says so: how many Tasks are looked up before they are sent. What came after the backup, by the clock,
    came in this life. Fault `validation_failed` for a moment that has not come."""
    now = desk.now()
    if backup_at > now + SLACK:
        raise Fault.invalid(("/backup_at", f"is in the future (it is {now.isoformat(timespec='seconds')} here)"))
    return await _put_back(desk, backup_at, now, backup_at + SLACK)


async def declare_over(desk: Desk, backup_at: datetime | None) -> int:
    """A person has compared both books: how many Tasks are sent without being looked up. Fault `not_found`."""
    if backup_at is not None and all(known.backup_at != backup_at for known in await desk.store.restores()):
        raise Fault.of("not_found", f"no restore of a backup of {backup_at.isoformat()} is known")
    freed = await desk.store.no_doubt(backup_at, desk.now())
    await _learn(desk)
    desk.bell.ring()
    return freed


async def _put_back(desk: Desk, backup_at: datetime, now: datetime, before: datetime) -> int:
    doubted = await desk.store.put_back(backup_at, now, before)
    await _learn(desk)
    if doubted:
        log.warning("the database was put back to %s; tasks that are looked up first: %d", backup_at, doubted)
    desk.bell.ring()
    return doubted


async def _learn(desk: Desk) -> Sequence[Restore]:
    """What this process goes by from now on."""
    desk.restores[:] = await desk.store.restores()
    return desk.restores


class KeepLife:
    """Belongs to one process. `told` = the moment of a backup that an operator named at the start."""

    def __init__(self, desk: Desk, mark: Mark, told: datetime | None = None) -> None:
        self._desk = desk
        self._mark = mark
        self._told = told
        self._last: Life | None = None

    async def begin(self) -> None:
        """Look before anything is sent, once the database answers. The mark is read first: others beat meanwhile."""
        marked = self._mark.read()
        while not await self._begun(marked):
            await self._desk.world.clock.sleep(AGAIN_S)

    async def _begun(self, marked: Life | None) -> bool:
        try:
            await self._look(marked)
            if self._told is not None:
                now = self._desk.now()
                await _put_back(self._desk, self._told, now, now)
        except Fault as fault:
            if fault.code != "governance_backend_down":
                raise
            log.warning("nothing is sent before the database answers: %s", fault.message)
            return False
        return True

    async def tick(self) -> None:
        """One beat. A database that went back under a living process is noticed too."""
        await self._look(self._last)

    async def _look(self, marked: Life | None) -> None:
        desk, now = self._desk, self._desk.now()
        life = await desk.store.life(desk.world.ids.ulid(), now)
        if was_put_back(life, marked):
            await _put_back(desk, life.at, now, now)
        known = marked is not None and marked.database == life.database
        self._last = await desk.store.beat(marked.beat if marked is not None and known else 0, now)
        try:
            self._mark.write(self._last)
        except OSError as error:
            log.warning("the mark beside the database is not kept, so a restore would not be noticed: %s", error)
        await _learn(desk)

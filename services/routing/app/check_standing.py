"""The running proof that every open Task has exactly one way to go on, and goes it (ATT-7, ATT-10).

Any number of processes may check at once: they read, and an alert is one row for its dedupe key. Each walks through
what is open a slice at a time, however much of it there is.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.routing.app.desk import Desk
from services.routing.app.tell_findings import Teller, Told
from services.routing.domain.decision import AlertDraft
from services.routing.domain.standing import (
    NEVER,
    OWED_S,
    TAKEN_OVER_S,
    Finding,
    Sort,
    Standing,
    findings,
    limits,
    not_taken,
    not_told,
)
from services.routing.ports.standing import Part, Place

SLICE = 5000
MOST_OWED = 20
FORGOTTEN_AFTER = timedelta(hours=2)
"""Longer than a walk through everything that is open."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The first of a line, and since when it is seen there."""

    task_id: str
    epoch: int
    since: datetime


class CheckStanding:
    """One tick of the check. Its place in each part is only this process's, and starts anew with it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._teller = Teller(desk)
        self._places: dict[Part, Place | None] = {}
        self._heads: dict[str, _Seen] = {}
        self._late: dict[Finding, datetime] = {}

    async def __call__(self) -> None:
        """Look at the next slice of every part, at the heads of the lines, and at what is owed to health."""
        now = self._desk.now()
        late = self._still_late([*await self._walk(now), *await self._owed(now)], now)
        found = [*late, *await self._not_taken(now)]
        for item in found:
            log.error("%s: %s", item.sort, item.message)
        await self._teller.tell([_told(item) for item in found])

    def _still_late(self, found: Sequence[Finding], now: datetime) -> list[Finding]:
        """What can never be is told at once, what is late once this process has seen it so for `TAKEN_OVER_S`: after an
        outage of ours or of the database everything is late for the moment in which it is taken up again."""
        known = {item: since for item, since in self._late.items() if now - since < FORGOTTEN_AFTER}
        self._late = known | {item: known.get(item, now) for item in found if item.sort not in NEVER}
        bound = timedelta(seconds=TAKEN_OVER_S)
        return [item for item in found if item.sort in NEVER or now - self._late[item] >= bound]

    async def _walk(self, now: datetime) -> list[Finding]:
        bounds = limits(now, self._desk.settings.poll_give_up_s)
        found: dict[tuple[str, str], Finding] = {}  # a Task with a live Attempt is met in two parts
        for part in Part:
            place = self._places.get(part)
            suspects, self._places[part] = await self._desk.store.suspects(part, place, SLICE, bounds)
            for standing, matches in suspects:
                found |= {(item.sort, item.subject): item for item in findings(standing, matches, bounds)}
        return list(found.values())

    async def _not_taken(self, now: datetime) -> list[Finding]:
        """Lines are served in order, so however long one is, its first Task is taken soon: one that stays the first,
        unclaimed, for longer than a lease and 15 s is passed by everybody."""
        bound = timedelta(seconds=self._desk.settings.worker_lease_s + TAKEN_OVER_S)
        heads = await self._desk.store.heads(now, now - bound)
        self._heads = {line: self._seen(line, standing, now) for line, standing in heads.items()}
        return [
            not_taken(standing, self._heads[line].since)
            for line, standing in heads.items()
            if now - self._heads[line].since >= bound
        ]

    def _seen(self, line: str, standing: Standing, now: datetime) -> _Seen:
        before = self._heads.get(line)
        if before is not None and (before.task_id, before.epoch) == (standing.task_id, standing.epoch):
            return before
        return _Seen(standing.task_id, standing.epoch, now)

    async def _owed(self, now: datetime) -> Sequence[Finding]:
        owed = await self._desk.store.owed(now - timedelta(seconds=OWED_S), MOST_OWED)
        return [not_told(item.id, item.task_id, item.finished_at) for item in owed if item.finished_at]


def _told(item: Finding) -> Told:
    kind = "invariant_violated" if item.sort in NEVER - {Sort.NO_RULE} else "stuck_state"
    severity = "critical" if item.sort in NEVER else "high"
    draft = AlertDraft(kind, severity, item.subject, item.message, cause=f"{item.sort}: task {item.task_id}")
    return Told(draft, item.sort, f"/v1/tasks/{item.task_id}")

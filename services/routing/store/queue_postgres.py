"""The durable queue in PostgreSQL: callers of one turn of the loop share a statement and a commit.

Laws of this file:
- additions, writes, claims and acknowledgements each have a connection of their own, opened when first needed;
- every write of a holder names the epoch of its claim, and a Task that has ended matches nothing (ATT-7);
- virtual time is what this process has seen of it: it begins where the rows say, and catches up with others' at every
  claim.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from libs.faults.fault import Fault
from libs.store.database import Database
from libs.store.gathering import Gathering
from services.routing.domain.fairness import charge, class_of
from services.routing.domain.task import TERMINAL_TASKS, Attempt, Task, TaskState
from services.routing.ports import Lane, Write
from services.routing.ports.waking import Line, Pick
from services.routing.store import queue_statements as sql
from services.routing.store.tasks_rows import attempt_of, attempt_row, round_row, task_changes, task_of, task_row
from services.routing.store.tasks_tables import attempts

EVERYBODYS = frozenset({"governance_backend_down", "revision_conflict"})
LOOK_BACK = timedelta(seconds=1)
FULL_LOOK = timedelta(seconds=1)
FROM_THE_START = float("-inf")
LOOKS = 64
LINES = 32
BEFORE_ALL: Line = ("", "", -1)

encode = msgspec.json.encode


def _shared(error: Exception) -> bool:
    return isinstance(error, Fault) and error.code in EVERYBODYS


class PostgresQueue:
    """The part of `TaskStore` that is written all the time."""

    def __init__(self, database: Database) -> None:
        self._adding, self._writing, self._claiming = (database.lane(by_index=True) for _ in range(3))
        self._additions: Gathering[Task, bool] = Gathering(self._add_all, lambda task: task.id, shared=_shared)
        self._writes: Gathering[Write, Task | None] = Gathering(
            self._save_all, lambda write: write.before.id, shared=_shared
        )
        self._told: Gathering[tuple[str, ...], None] = Gathering(self._tell_all, lambda ids: ids, shared=_shared)
        self._time = VirtualTime()
        self._began = False

    async def close(self) -> None:
        """Answer who waits."""
        for gathering in (self._additions, self._writes, self._told):
            await gathering.close()

    async def _added(self, task: Task) -> bool:
        """Whether it is new."""
        return await self._additions.ask(task)

    async def _add_all(self, new: Sequence[Task]) -> Sequence[bool | Exception]:
        if not self._began:
            (row,) = await self._adding.fetch(sql.PRESENT)
            self._time.now, self._began = max(self._time.now, row["present"]), True
        rows = [task_row(task) | {"nth": nth, "cost": _charge(task)} for nth, task in enumerate(new)]
        made = await self._adding.fetch(sql.ADD, encode(rows).decode(), self._time.now)
        ids = {row["id"] for row in made}
        return [task.id in ids for task in new]

    async def _saved(self, write: Write) -> Task | None:
        """The Task as stored; None where the write was refused."""
        return await self._writes.ask(write)

    async def _save_all(self, group: Sequence[Write]) -> Sequence[Task | Exception | None]:
        return stored(group, await self._writing.fetch(sql.SAVE, *save_values(group)))

    async def reported(self, attempt_ids: Sequence[str]) -> None:
        """See the port."""
        await self._told.ask(tuple(attempt_ids))

    async def _tell_all(self, groups: Sequence[tuple[str, ...]]) -> Sequence[None]:
        ids = sorted({attempt_id for group in groups for attempt_id in group})
        await self._adding.fetch(sql.REPORTED, ids)
        return [None] * len(groups)

    async def claim(self, lane: Lane, worker: str, count: int, now: datetime, until: datetime) -> tuple[Task, ...]:
        """See the port."""
        if lane is Lane.FOLLOW:
            return _tasks(await self._claiming.fetch(sql.CLAIM_FOLLOWED, count, now, worker, until))
        low = self._time.lowest(now)
        rows = await self._claiming.fetch(sql.CLAIM_QUEUED, count, now, worker, until, low)
        taken = _tasks(rows)
        tags = (row["tag"] for row in rows if not (row["cancel_requested"] or _is_late(row["deadline"], now)))
        self._time.served(max(tags, default=FROM_THE_START), now, full=len(taken) == count)
        return taken

    async def claim_one(self, task_id: str, worker: str, now: datetime, until: datetime) -> Task | None:
        """See the port."""
        return next(iter(_tasks(await self._claiming.fetch(sql.CLAIM_ONE, task_id, now, worker, until))), None)

    async def prolong(self, claims: Sequence[tuple[str, int]], until: datetime) -> frozenset[str]:
        """See the port."""
        ids, epochs = [task_id for task_id, _ in claims], [epoch for _, epoch in claims]
        return frozenset(row["id"] for row in await self._writing.fetch(sql.PROLONG, ids, epochs, until))

    async def pause(self, ends: Mapping[str, datetime]) -> None:
        """See the port."""
        await self._writing.fetch(sql.PAUSE, list(ends), list(ends.values()))

    async def unpause(self, task_ids: Sequence[str], now: datetime) -> None:
        """See the port."""
        await self._writing.fetch(sql.UNPAUSE, list(task_ids), now)

    async def wake(self, count: int, now: datetime, looked_by: datetime) -> tuple[int, bool]:
        """See the port."""
        (row,) = await self._claiming.fetch(sql.WAKE, count, now, looked_by, LOOKS)
        return row["woken"], row["waiting"]

    async def wake_lines(
        self, count: int, now: datetime, looked_by: datetime, after: Line | None
    ) -> tuple[int, Line | None]:
        """See the port."""
        given = (count, now, looked_by, LINES, *(after or BEFORE_ALL))
        for row in await self._claiming.fetch(sql.WAKE_LINES, *given):
            more = row["nth"] == LINES
            return row["woken"], (row["model"], row["tenant"], row["urgency"]) if more else None
        return 0, None

    async def wake_first(self, picks: Sequence[Pick], now: datetime) -> Sequence[int]:
        """See the port."""
        columns = zip(*((*pick.line, pick.round_key, pick.count) for pick in picks), strict=True)
        rows = await self._claiming.fetch(sql.WAKE_FIRST, *map(list, columns), now, LOOKS)
        woken = {row["nth"]: row["woken"] for row in rows}
        return [woken.get(nth, 0) for nth in range(1, len(picks) + 1)]


class VirtualTime:
    """Where the queue's virtual time stands, as far as this process knows, and from where on a claim need look.

    Tags only rise: whoever enters gets one of the present or later. Who entered through another process, whose time
    stood further back, is found by a look from the start, once a second. So what has left the queue is not walked over
    at every claim, however long an old snapshot makes its rows stay.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._past: deque[tuple[datetime, float]] = deque()
        self._full_look: datetime | None = None

    def lowest(self, now: datetime) -> float:
        """The lowest tag to look at."""
        if self._full_look is None or now - self._full_look >= FULL_LOOK or now < self._full_look:
            self._full_look = now
            return FROM_THE_START
        while len(self._past) > 1 and now - self._past[1][0] >= LOOK_BACK:
            self._past.popleft()
        return self._past[0][1] if self._past and now - self._past[0][0] >= LOOK_BACK else FROM_THE_START

    def served(self, tag: float, now: datetime, *, full: bool) -> None:
        """A claim took Tasks up to that tag; `full` when it found as many as it wanted."""
        self.now = max(self.now, tag)
        if full and (not self._past or self._past[-1][0] != now):
            self._past.append((now, self.now))


def save_values(group: Sequence[Write]) -> tuple[str, ...]:
    """What the statement SAVE is given."""
    begun, moved = _changed_attempts(group)
    parts: tuple[list[dict[str, Any]], ...] = (
        [_write_row(nth, write) for nth, write in enumerate(group)],
        [attempt_row(item) for item in begun],
        [attempt_row(item) for item in moved],
        [round_row(item) for write in group for item in write.rounds],
    )
    return tuple(encode(part).decode() for part in parts)


def stored(group: Sequence[Write], rows: Sequence[Any]) -> list[Task | None]:
    """The Tasks as SAVE has left them; None for those that were refused."""
    saved: list[Task | None] = [None] * len(group)
    for row in rows:
        saved[row["nth"]] = replace(
            group[row["nth"]].after,
            revision=row["revision"],
            next_action_at=row["next_action_at"],
            cancel_requested=row["cancel_requested"],
            cancel_reason=row["cancel_reason"],
            paused=row["paused"],
        )
    return saved


def _is_late(deadline: datetime | None, now: datetime) -> bool:
    """Whether the Task is only to end: like one to be cancelled it was taken before its turn, and moves no time on."""
    return deadline is not None and deadline <= now


def _charge(task: Task) -> float:
    return charge(task.kind, task.request.input, class_of(task.request))


def _write_row(nth: int, write: Write) -> dict[str, Any]:
    after, ended = write.after, write.after.state in TERMINAL_TASKS
    return task_changes(after) | {
        "nth": nth,
        "id": write.before.id,
        "epoch": write.before.epoch,
        "unless_stopped": write.unless_stopped,
        "ended": ended,
        "undoubted": write.before.doubt is not None and after.doubt is None,
        "paused": write.before.paused,
        "due_if_turned": write.now if after.state is TaskState.QUEUED else None,
        "due_if_cancelled": None if ended or write.before.cancel_requested else write.now,
        "claimed_until": write.until,
        "parked_at": write.now if write.until is None and after.parked else None,
    }


def _changed_attempts(group: Sequence[Write]) -> tuple[list[Attempt], list[Attempt]]:
    """(new, changed) ones of all writes."""
    begun: list[Attempt] = []
    moved: list[Attempt] = []
    for write in group:
        known = {attempt.id: attempt for attempt in write.before.attempts}
        for attempt in write.after.attempts:
            if attempt.id not in known:
                begun.append(attempt)
            elif known[attempt.id] != attempt:
                moved.append(attempt)
    return begun, moved


def _tasks(rows: Sequence[Any]) -> tuple[Task, ...]:
    """Tasks of rows that hold one Attempt each, or none; in the order of the rows."""
    found: dict[str, tuple[Mapping[str, Any], list[Attempt]]] = {}
    for row in rows:
        _, of_task = found.setdefault(row["id"], (row, []))
        if row["a_id"] is not None:
            given = {name: row[f"a_{name}"] for name in _ATTEMPT_COLUMNS}
            of_task.append(attempt_of(given))
    return tuple(task_of(row, of_task) for row, of_task in found.values())


_ATTEMPT_COLUMNS = tuple(column.name for column in attempts.c)

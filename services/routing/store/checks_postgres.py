"""What the running checks read from PostgreSQL: recovery predicates as SQL, and a walk that reads only what is open.

Laws of this file:
- the predicates are written once, in the domain; here each becomes a condition, and a row counts those that hold;
- every statement is led by a partial index of open rows, so that what has ended costs a check nothing;
- a pass goes on from the key that it has come to. Rows that are worked on move and may be missed; one that nobody
  touches stays where it is and is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from services.routing.domain.standing import PREDICATES, Limits, Need, Predicate, Standing
from services.routing.domain.task import TERMINAL_ATTEMPTS, Attempt, AttemptState, TaskState
from services.routing.ports.standing import Part, Place
from services.routing.store.queue_statements import PARKED_GROUPS
from services.routing.store.tasks_rows import attempt_of
from services.routing.store.tasks_tables import FOLLOWED, LIVE, OPEN

NEEDS: Mapping[Need, str] = {
    Need.DUE: "(t.timer_at IS NOT NULL) <> (r.task_id IS NOT NULL)",  # found by one of the two, never by both
    Need.JOB: "a.provider_task_id <> ''",
    Need.END: "a.uncertain_deadline IS NOT NULL",
}


def predicate_sql(item: Predicate) -> str:
    """The condition of one recovery predicate over a Task `t` and its live Attempt `a`, NULL where there is none."""
    live = "a.id IS NULL" if item.live is None else f"coalesce(a.state = '{item.live}', false)"
    return " AND ".join((f"t.state = '{item.task}'", live, *(NEEDS[need] for need in item.needs)))


MATCHING = " + ".join(f"({predicate_sql(item)})::int" for item in PREDICATES)
QUEUED = "t.state = 'queued'"
OPEN_FOLLOWED = FOLLOWED.replace("state", "t.state")
LIVE_ATTEMPT = LIVE.replace("state", "a.state")
HELD = "t.paused AND t.state = 'queued' AND t.claimed_until IS NULL"
SUSPECT = f"""(
    ({MATCHING}) <> 1 OR t.waiting_reason = '' AND (t.state = 'queued' OR a.state = 'submission_uncertain')
    OR t.claimed_until < :lapsed OR t.timer_at > :doubt_asleep AND t.parked_at IS NULL AND NOT ({HELD})
    OR a.state = 'submission_uncertain' AND a.uncertain_deadline < :doubt_over OR a.polls_failing_since < :given_up
)"""
COLUMNS = f"""
    t.id AS task_id, t.state AS task, t.claimed_until, t.waiting_reason, t.epoch,
    coalesce(t.timer_at, CASE WHEN r.task_id IS NOT NULL THEN t.created_at END) AS next_action_at,
    t.parked_at IS NOT NULL AND t.claimed_until IS NULL AS parked, {HELD} AS held,
    coalesce(a.id, '') AS attempt_id, a.state AS live, coalesce(a.provider_task_id, '') AS provider_task_id,
    a.uncertain_deadline, a.polls_failing_since, {MATCHING} AS matching"""
FROM_TASKS = f"""FROM tasks t LEFT JOIN ready r ON r.task_id = t.id
    LEFT JOIN attempts a ON a.task_id = t.id AND {LIVE_ATTEMPT}"""
OF_TASKS = f"SELECT {COLUMNS} {FROM_TASKS} WHERE"
OF_ATTEMPTS = f"""SELECT {COLUMNS} FROM attempts a JOIN tasks t ON t.id = a.task_id
    LEFT JOIN ready r ON r.task_id = t.id WHERE {LIVE_ATTEMPT}"""

KEYS: Mapping[Part, tuple[tuple[str, str], ...]] = {
    Part.QUEUED: (("t.timer_at", "timestamptz"), ("t.id", "text")),
    Part.FOLLOWED: (("t.timer_at", "timestamptz"), ("t.id", "text")),
    Part.UNTIMED: (("t.id", "text"),),
    Part.LIVE: (("a.task_id", "text"),),
}
"""The columns of the index that leads a part, with their types."""
TASKS: Mapping[Part, str] = {
    Part.QUEUED: f"{QUEUED} AND t.timer_at IS NOT NULL",
    Part.FOLLOWED: f"{OPEN_FOLLOWED} AND t.timer_at IS NOT NULL",
    Part.UNTIMED: OPEN.replace("state", "t.state") + " AND t.timer_at IS NULL",
}
SOURCES: Mapping[Part, str] = {
    **{part: f"tasks t WHERE {where}" for part, where in TASKS.items()},
    Part.LIVE: f"attempts a WHERE {LIVE_ATTEMPT}",
}
JUDGED: Mapping[Part, str] = {
    **{part: f"{OF_TASKS} {where}" for part, where in TASKS.items()},
    Part.LIVE: OF_ATTEMPTS,
}
OF_HEADS = f"{COLUMNS.strip()} {FROM_TASKS}"
FREE = "(t.claimed_until IS NULL OR t.claimed_until <= :now)"
FREE_SINCE = f"t.timer_at <= :since AND {FREE}"
HEADS = text(f"""
WITH RECURSIVE {PARKED_GROUPS}
(SELECT 'ready' AS line, {OF_HEADS} WHERE t.id = (SELECT task_id FROM ready ORDER BY tag, task_id LIMIT 1)
  AND t.created_at <= :since AND {FREE})
UNION ALL (SELECT 'timer', {OF_HEADS} WHERE {QUEUED} AND {FREE_SINCE} ORDER BY t.timer_at, t.id LIMIT 1)
UNION ALL (SELECT 'followed', {OF_HEADS} WHERE {OPEN_FOLLOWED} AND {FREE_SINCE} ORDER BY t.timer_at, t.id LIMIT 1)
UNION ALL (SELECT 'parked ' || g.model || ' ' || g.round_key, head.* FROM groups g, LATERAL (SELECT {OF_HEADS}
  WHERE t.parked_at IS NOT NULL AND t.model = g.model AND t.round_key = g.round_key
  ORDER BY t.tag, t.id LIMIT 1) head, tasks p
  WHERE p.id = head.task_id AND p.parked_at <= :since AND head.parked AND p.timer_at > :now)
""")
OWED = text(
    "SELECT * FROM attempts WHERE report_pending AND finished_at < :since ORDER BY finished_at, id LIMIT :count"
)
ENDED = ", ".join(f"'{state}'" for state in sorted(TERMINAL_ATTEMPTS))
UNHELD = text(  # a lease is named after its Attempt, so the primary key leads
    "SELECT held.id, coalesce(a.task_id, '') FROM unnest(CAST(:ids AS text[])) AS held(id)"
    " LEFT JOIN attempts a ON a.id = held.id"
    f" WHERE a.id IS NULL OR a.state IN ({ENDED}) AND a.finished_at < :since"
)


class PostgresChecks:
    """`StandingReader`. `_database` is set by whoever it is a part of."""

    _database: Database

    async def suspects(
        self, part: Part, after: Place | None, count: int, bounds: Limits
    ) -> tuple[Sequence[tuple[Standing, int]], Place | None]:
        """See the port."""
        async with self._database.read() as tx:
            end = (await tx.execute(end_statement(part, after), _bounds("after", after) | {"skip": count - 1})).first()
            place = None if end is None else tuple(end)
            given = {**asdict(bounds), **_bounds("after", after), **_bounds("end", place)}
            return await _standings(tx, judging_statement(part, after, place), given), place

    async def heads(self, now: datetime, since: datetime) -> Mapping[str, Standing]:
        """See the port."""
        async with self._database.read() as tx:
            rows = (await tx.execute(HEADS, {"now": now, "since": since})).mappings().all()
        return {row["line"]: _standing(row) for row in rows}

    async def owed(self, since: datetime, count: int) -> tuple[Attempt, ...]:
        """See the port."""
        async with self._database.read() as tx:
            rows = (await tx.execute(OWED, {"since": since, "count": count})).mappings().all()
        return tuple(attempt_of(row) for row in rows)

    async def unheld(self, lease_ids: Sequence[str], since: datetime) -> Mapping[str, str]:
        """See the port."""
        async with self._database.read() as tx:
            rows = (await tx.execute(UNHELD, {"ids": list(lease_ids), "since": since})).all()
        return {row[0]: row[1] for row in rows}


def end_statement(part: Part, after: Place | None) -> TextClause:
    """The key of the last row of the next slice; no row where fewer are left."""
    keys = ", ".join(column for column, _ in KEYS[part])
    return text(f"SELECT {keys} FROM {SOURCES[part]}{_beyond(part, after)} ORDER BY {keys} OFFSET :skip LIMIT 1")


def judging_statement(part: Part, after: Place | None, end: Place | None) -> TextClause:
    """The suspects of a slice: all that is open, with no place after or no end."""
    return text(f"{JUDGED[part]}{_beyond(part, after)}{_until(part, end)} AND {SUSPECT}")


def _beyond(part: Part, after: Place | None) -> str:
    return "" if after is None else f" AND {_compared(part, '>', 'after')}"


def _until(part: Part, end: Place | None) -> str:
    return "" if end is None else f" AND {_compared(part, '<=', 'end')}"


def _compared(part: Part, sign: str, name: str) -> str:
    columns = ", ".join(column for column, _ in KEYS[part])
    values = ", ".join(f"CAST(:{name}{number} AS {sort})" for number, (_, sort) in enumerate(KEYS[part]))
    return f"({columns}) {sign} ({values})"


def _bounds(name: str, place: Place | None) -> dict[str, Any]:
    return {f"{name}{number}": value for number, value in enumerate(place or ())}


async def _standings(
    tx: AsyncConnection, statement: TextClause, given: Mapping[str, Any]
) -> list[tuple[Standing, int]]:
    rows = (await tx.execute(statement, given)).mappings().all()
    return [(_standing(row), row["matching"]) for row in rows]


def _standing(row: Mapping[Any, Any]) -> Standing:
    same = ("task_id", "next_action_at", "claimed_until", "waiting_reason", "epoch", "attempt_id", "provider_task_id")
    more = ("uncertain_deadline", "polls_failing_since", "parked", "held")
    live = None if row["live"] is None else AttemptState(row["live"])
    return Standing(task=TaskState(row["task"]), live=live, **{name: row[name] for name in (*same, *more)})

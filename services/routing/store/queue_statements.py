"""The statements of the durable queue: each is one transaction for a whole group of callers, sent over a lane.

Laws of this file:
- rows are locked in one order: lines, Tasks by id, then Attempts, rounds; a claim skips what is locked;
- candidates are looked up first and that fixed list is locked: the order is decided before the locks;
- a list of ids is met as an array: of how many rows a LIMIT by parameter gives the planner knows nothing, expects a
  tenth of the table and would read all of it;
- a group comes as JSON; `nth` is the caller's place in it. Who is not answered was refused.

How a Task that has not ended is found again, always by exactly one of these:

| where it stands | found by |
|---|---|
| never claimed | its row in `ready`, in the order of its tag; its deadline; once a cancel was asked for, `timer_at` |
| waits, in the queue or at a provider | `timer_at`, the time of its next look; parked ones may be woken before |
| paused in the queue | `timer_at`, the end of its time for new Attempts; nothing wakes it before |
| claimed | `timer_at`, the end of the claim |
"""

from collections.abc import Iterable

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql

from services.routing.domain.task import TERMINAL_TASKS
from services.routing.store.tasks_tables import FOLLOWED, URGENT, attempts, selections, tasks

ENDED = ", ".join(f"'{state.value}'" for state in sorted(TERMINAL_TASKS))
FREE = "(t.claimed_until IS NULL OR t.claimed_until <= $2)"

_QUEUE = frozenset({"tag", "timer_at", "parked_at"})
_NOT_GIVEN = _QUEUE | {"next_action_at"}
NEW_TASK = tuple(column.name for column in tasks.c if column.name not in _NOT_GIVEN)
"""Columns of a new Task that come from the caller."""
_CHANGES = ("state", "currency", "spent", "waiting_reason", "rounds", "round_key", "result", "failure", "finished_at")
_FIXED = frozenset(
    "id task_id number supply channel epoch round currency quote lease_id channel_epoch supply_epoch"
    " catalog_revision input degradation reserved_at doubted".split()
)
_MOVING = tuple(column.name for column in attempts.c if column.name not in _FIXED)
"""Columns of an Attempt that change after it was made."""


def _names(columns: Iterable[str], of: str = "") -> str:
    return ", ".join(f"{of}{name}" for name in columns)


def _shape(table: Table, columns: Iterable[str]) -> str:
    dialect = postgresql.dialect()
    return ", ".join(f"{name} {table.c[name].type.compile(dialect)}" for name in columns)


ADD = f"""
WITH given AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS g(nth integer, cost double precision, {_shape(tasks, NEW_TASK)})
), fresh AS MATERIALIZED (
  SELECT * FROM given WHERE id <> ALL (ARRAY(
    SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM given))))
), line AS (
  INSERT INTO lines AS l (tenant, model, urgency, finish)
  SELECT tenant, model, urgency, $2 + sum(cost) FROM fresh GROUP BY tenant, model, urgency
  ORDER BY tenant, model, urgency
  ON CONFLICT (tenant, model, urgency) DO UPDATE SET finish = greatest(l.finish, $2) + excluded.finish - $2
  RETURNING tenant, model, urgency, finish
), made AS (
  INSERT INTO tasks ({_names(NEW_TASK)}, next_action_at, timer_at, tag)
  SELECT {_names(NEW_TASK)}, created_at, CASE WHEN cancel_requested THEN created_at END, finish - sum(cost) OVER (
    PARTITION BY tenant, model, urgency ORDER BY nth ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
  FROM fresh JOIN line USING (tenant, model, urgency)
  ON CONFLICT (id) DO NOTHING RETURNING id, tag, timer_at
), entered AS (
  INSERT INTO ready (task_id, tag) SELECT id, tag FROM made WHERE timer_at IS NULL
)
SELECT id FROM made
"""
"""$1 the Tasks, $2 the virtual time. A Task's tag is where its line stood before it: see `domain.fairness`."""

PRESENT = "SELECT coalesce((SELECT min(tag) FROM ready), (SELECT max(finish) FROM lines), 0) AS present"
"""Where virtual time stands, for a process that has not seen it: at whoever is next, else where the lines end."""

_TAKE = f"""
locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE {{still}} ORDER BY t.id FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM ready r WHERE r.task_id = ANY (ARRAY(SELECT id FROM locked))
), taken AS (
  UPDATE tasks t SET epoch = t.epoch + 1, worker = $3, claimed_until = $4, timer_at = $4
  WHERE t.id = ANY (ARRAY(SELECT id FROM locked)) RETURNING t.*
)
SELECT taken.*, {_names((f"{name} AS a_{name}" for name in attempts.c.keys()), "a.")}
FROM taken LEFT JOIN attempts a ON a.task_id = taken.id ORDER BY taken.tag, taken.timer_at, taken.id, a.number
"""  # noqa: SIM118 # a column collection, no dict

CLAIM_QUEUED = f"""
WITH heads AS (
  (SELECT task_id AS id, tag FROM ready WHERE tag >= $5 ORDER BY tag, task_id LIMIT $1)
  UNION ALL
  (SELECT id, CASE WHEN cancel_requested THEN '-Infinity' ELSE tag END FROM tasks
   WHERE state = 'queued' AND timer_at <= $2 ORDER BY timer_at LIMIT $1)
  UNION ALL
  (SELECT id, '-Infinity' FROM tasks
   WHERE state = 'queued' AND timer_at IS NULL AND deadline <= $2 ORDER BY deadline LIMIT $1)
), picked AS MATERIALIZED (
  SELECT id FROM heads ORDER BY tag, id LIMIT $1
), {_TAKE.format(still=f"t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.state = 'queued' AND {FREE}"
                       " AND (t.timer_at IS NULL OR t.timer_at <= $2)")}
"""  # fmt: skip
"""$1 how many, $2 now, $3 worker, $4 until, $5 the lowest tag that is looked at. What is only to end waits for none."""

CLAIM_FOLLOWED = f"""
WITH heads AS (
  (SELECT id, 0 AS later, timer_at FROM tasks WHERE {URGENT} AND timer_at <= $2 ORDER BY timer_at LIMIT $1)
  UNION ALL
  (SELECT id, 1 AS later, timer_at FROM tasks WHERE {FOLLOWED} AND timer_at <= $2 ORDER BY timer_at LIMIT $1)
), picked AS MATERIALIZED (
  SELECT id FROM heads GROUP BY id ORDER BY min(later), min(timer_at), id LIMIT $1
), {_TAKE.format(still=f"t.id = ANY (ARRAY(SELECT id FROM picked)) AND t.{FOLLOWED} AND t.timer_at <= $2")}
"""
"""$1 how many, $2 now, $3 worker, $4 until. However many polls are due, what must not wait goes first."""

CLAIM_ONE = f"""
WITH {_TAKE.format(still=f"t.id = $1 AND t.state NOT IN ({ENDED}) AND {FREE}")}
"""
"""$1 the id, $2 now, $3 worker, $4 until."""

_NEXT = """CASE
      WHEN t.cancel_requested THEN coalesce(a.due_if_cancelled, a.next_action_at)
      WHEN t.paused <> a.paused THEN coalesce(a.due_if_turned, a.next_action_at)
      ELSE a.next_action_at END"""
"""What came in between, a cancel, a pause or the end of one, is to be looked at at once."""

SAVE = f"""
WITH asked AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1) AS a(
    nth integer, id text, epoch bigint, unless_stopped boolean, ended boolean, undoubted boolean,
    paused boolean, due_if_turned timestamptz, next_action_at timestamptz,
    due_if_cancelled timestamptz, claimed_until timestamptz, parked_at timestamptz, {_shape(tasks, _CHANGES)})
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM asked)) ORDER BY t.id FOR UPDATE
), written AS (
  UPDATE tasks t SET
    {_names(f"{name} = a.{name}" for name in _CHANGES)}, revision = t.revision + 1,
    next_action_at = {_NEXT},
    claimed_until = a.claimed_until, worker = CASE WHEN a.claimed_until IS NULL THEN '' ELSE t.worker END,
    timer_at = CASE WHEN a.ended THEN NULL WHEN a.claimed_until IS NOT NULL THEN a.claimed_until
      ELSE {_NEXT} END,
    parked_at = CASE WHEN t.cancel_requested OR t.paused THEN NULL ELSE a.parked_at END,
    doubted_since = CASE WHEN a.undoubted THEN NULL ELSE t.doubted_since END,
    doubted_until = CASE WHEN a.undoubted THEN NULL ELSE t.doubted_until END
  FROM asked a JOIN locked l ON l.id = a.id
  WHERE t.id = a.id AND t.epoch = a.epoch AND t.state NOT IN ({ENDED})
    AND NOT (a.unless_stopped AND (t.cancel_requested OR t.paused))
  RETURNING a.nth, t.id, t.revision, t.next_action_at, t.cancel_requested, t.cancel_reason, t.paused
), begun AS (
  INSERT INTO attempts ({_names(attempts.c.keys())})
  SELECT {_names(attempts.c.keys(), "n.")} FROM json_populate_recordset(NULL::attempts, $2) n
  JOIN written w ON w.id = n.task_id
), moved AS (
  UPDATE attempts o SET {_names(f"{name} = n.{name}" for name in _MOVING)}
  FROM json_populate_recordset(NULL::attempts, $3) n JOIN written w ON w.id = n.task_id WHERE o.id = n.id
), kept AS (
  INSERT INTO selections ({_names(selections.c.keys())})
  SELECT {_names(selections.c.keys(), "n.")} FROM json_populate_recordset(NULL::selections, $4) n
  JOIN written w ON w.id = n.task_id
)
SELECT nth, revision, next_action_at, cancel_requested, cancel_reason, paused FROM written
"""  # column collections, no dicts
"""$1 the Tasks, $2 new Attempts, $3 changed ones, $4 rounds."""

PROLONG = """
WITH held AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::bigint[]) AS h(id, epoch)
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t JOIN held h ON h.id = t.id AND h.epoch = t.epoch
  WHERE t.claimed_until IS NOT NULL ORDER BY t.id FOR UPDATE OF t
), prolonged AS (
  UPDATE tasks t SET claimed_until = $3, timer_at = $3 FROM locked l, held h
  WHERE t.id = l.id AND h.id = t.id AND t.epoch = h.epoch AND t.claimed_until IS NOT NULL
)
SELECT h.id FROM held h LEFT JOIN tasks t ON t.id = h.id AND t.epoch = h.epoch WHERE t.id IS NULL
"""
"""$1 ids, $2 epochs, $3 until; answers those that somebody else has claimed since."""

PAUSE = f"""
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::timestamptz[]) AS a(id, till)
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM asked)) AND t.state NOT IN ({ENDED})
    AND NOT t.paused ORDER BY t.id FOR UPDATE
), gone AS (
  DELETE FROM ready r WHERE r.task_id = ANY (ARRAY(SELECT id FROM locked))
)
UPDATE tasks t SET paused = true, parked_at = NULL, revision = t.revision + 1,
  next_action_at = CASE WHEN {{waits}} THEN a.till ELSE t.next_action_at END,
  timer_at = CASE WHEN {{waits}} AND t.claimed_until IS NULL THEN a.till ELSE t.timer_at END
FROM asked a JOIN locked l ON l.id = a.id WHERE t.id = a.id
""".replace("{waits}", "t.state = 'queued' AND NOT t.cancel_requested")
"""$1 ids, $2 the end of each one's time. Who is claimed stays with its claimer, who is refused its intent."""

UNPAUSE = f"""
WITH locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY ($1::text[]) AND t.state NOT IN ({ENDED}) AND t.paused
  ORDER BY t.id FOR UPDATE
)
UPDATE tasks t SET paused = false, revision = t.revision + 1,
  next_action_at = CASE WHEN t.state = 'queued' THEN $2 ELSE t.next_action_at END,
  timer_at = CASE WHEN t.state = 'queued' AND t.claimed_until IS NULL THEN $2 ELSE t.timer_at END
FROM locked l WHERE t.id = l.id
"""
"""$1 ids, $2 now."""

PARKED_GROUPS = """groups AS (
  (SELECT model, round_key FROM tasks WHERE parked_at IS NOT NULL ORDER BY model, round_key LIMIT 1)
  UNION ALL
  SELECT next.model, next.round_key FROM groups g, LATERAL (
    SELECT t.model, t.round_key FROM tasks t
    WHERE t.parked_at IS NOT NULL AND (t.model, t.round_key) > (g.model, g.round_key)
    ORDER BY t.model, t.round_key LIMIT 1
  ) next
)"""
"""Whoever waits for the same: a model, and what its last decision said of every Supply. One step of the index each."""

WAKE = f"""
WITH RECURSIVE {PARKED_GROUPS}, fronts AS MATERIALIZED (
  SELECT front.id FROM groups g, LATERAL (
    SELECT t.id FROM tasks t
    WHERE t.parked_at <= $3 AND t.model = g.model AND t.round_key = g.round_key
      AND t.claimed_until IS NULL AND t.timer_at > $2
    ORDER BY t.tag, t.id LIMIT least($1, greatest(1, $4 / (SELECT count(*) FROM groups)))
  ) front
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM fronts)) AND t.claimed_until IS NULL
    AND t.parked_at IS NOT NULL AND t.timer_at > $2 ORDER BY t.id FOR UPDATE SKIP LOCKED
), woken AS (
  UPDATE tasks t SET timer_at = $2, next_action_at = $2
  WHERE t.id = ANY (ARRAY(SELECT id FROM locked)) RETURNING 1
)
SELECT (SELECT count(*) FROM woken) AS woken, EXISTS (SELECT FROM groups) AS waiting
"""
"""$1 how many of each group, $2 now, $3 only those that last looked by then, $4 how many in all, about."""

WAKE_LINES = """
WITH RECURSIVE found AS (
  (SELECT model, tenant, urgency, 1 AS nth FROM tasks
   WHERE parked_at IS NOT NULL AND (model, tenant, urgency) > ($5, $6, $7::smallint)
   ORDER BY model, tenant, urgency LIMIT 1)
  UNION ALL
  SELECT next.model, next.tenant, next.urgency, f.nth + 1 FROM found f, LATERAL (
    SELECT t.model, t.tenant, t.urgency FROM tasks t
    WHERE t.parked_at IS NOT NULL AND (t.model, t.tenant, t.urgency) > (f.model, f.tenant, f.urgency)
    ORDER BY t.model, t.tenant, t.urgency LIMIT 1
  ) next WHERE f.nth < $4
), fronts AS MATERIALIZED (
  SELECT front.id FROM found f, LATERAL (
    SELECT t.id FROM tasks t
    WHERE t.parked_at IS NOT NULL AND t.model = f.model AND t.tenant = f.tenant AND t.urgency = f.urgency
    ORDER BY t.turn_at, t.id LIMIT least($1, greatest(1, $4 / (SELECT count(*) FROM found)))
  ) front
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM fronts)) AND t.claimed_until IS NULL
    AND t.parked_at <= $3 AND t.timer_at > $2 ORDER BY t.id FOR UPDATE SKIP LOCKED
), woken AS (
  UPDATE tasks t SET timer_at = $2, next_action_at = $2
  WHERE t.id = ANY (ARRAY(SELECT id FROM locked)) RETURNING 1
)
SELECT model, tenant, urgency, nth, (SELECT count(*) FROM woken) AS woken FROM found ORDER BY nth DESC LIMIT 1
"""
"""As WAKE, of each line, those after ($5 model, $6 tenant, $7 class); no row where there is none."""

WAKE_FIRST = """
WITH asked AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::int[])
    WITH ORDINALITY AS a(model, tenant, urgency, round_key, places, nth)
), fronts AS MATERIALIZED (
  SELECT a.nth, front.id FROM asked a, LATERAL (
    SELECT line.id FROM (
      SELECT t.id, t.turn_at, t.round_key, t.claimed_until, t.timer_at FROM tasks t
      WHERE t.parked_at IS NOT NULL AND t.model = a.model AND t.tenant = a.tenant AND t.urgency = a.urgency
      ORDER BY t.turn_at, t.id LIMIT $7
    ) line WHERE line.round_key = a.round_key AND line.claimed_until IS NULL AND line.timer_at > $6
    ORDER BY line.turn_at, line.id LIMIT a.places
  ) front
), locked AS MATERIALIZED (
  SELECT t.id FROM tasks t WHERE t.id = ANY (ARRAY(SELECT id FROM fronts)) AND t.claimed_until IS NULL
    AND t.parked_at IS NOT NULL AND t.timer_at > $6 ORDER BY t.id FOR UPDATE SKIP LOCKED
), woken AS (
  UPDATE tasks t SET timer_at = $6, next_action_at = $6
  WHERE t.id = ANY (ARRAY(SELECT id FROM locked)) RETURNING t.id
)
SELECT f.nth, count(*) AS woken FROM fronts f JOIN woken w ON w.id = f.id GROUP BY f.nth
"""
"""$1 to $5 model, tenant, class, last decision and how many of each, $6 now, $7 how far into a line is looked."""

REPORTED = "UPDATE attempts SET report_pending = false WHERE id = ANY($1::text[]) AND report_pending"

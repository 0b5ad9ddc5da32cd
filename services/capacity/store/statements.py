"""The statements of the PostgreSQL backend. `{now}` is where the time comes from: the server's clock.

Laws of this file:
- a lease stops to count only once it is *marked* as ended. Who wants its slot marks it first; a renewal in flight holds
  the row, is skipped, and the lease counts on. So a lease can never be renewed after its slot was given away;
- who marks or renews several leases locks them in the order of their ids or skips what is locked;
- the statement that counts runs after the levels are locked, so that it sees what earlier reservations committed.
"""

# The level of a whole kind is left out where it has no gate, so that Channels do not wait for each other at its row.
LOCK_LEVELS = """
SELECT * FROM level
WHERE (kind, id) IN ((1, :kind), (2, :channel_id), (3, :supply_id)) AND NOT retired
  AND (kind > 1 OR concurrency > 0 OR requests_per_minute > 0 OR tokens_per_minute > 0)
ORDER BY kind, id FOR UPDATE
"""

# Leases that may count on the levels of a request; `{scope}` narrows to its Channel (and its kind, where that is a
# declared level), `{recent}` asks for those of the last minute too, where a level has a window.
CHANNEL = "channel_id = :channel_id"
CHANNEL_OR_KIND = "(channel_id = :channel_id OR kind = :kind)"
RECENT = "reserved_at > t.now - interval '60 seconds'"

END_LAPSED = """
UPDATE lease SET ended_at = expires_at WHERE id IN (
  SELECT id FROM lease, t WHERE ended_at IS NULL AND expires_at <= t.now AND {scope}
  ORDER BY id FOR UPDATE OF lease SKIP LOCKED
) RETURNING id, kind, channel_id, supply_id
"""

COUNT = (
    """
WITH t AS MATERIALIZED (SELECT {now} AS now),
lapsed AS ("""
    + END_LAPSED
    + """),
groups AS (
  SELECT kind, channel_id, supply_id, channel_epoch, supply_epoch,
    count(*) FILTER (WHERE ended_at IS NULL AND id NOT IN (SELECT id FROM lapsed)) AS live,
    count(*) FILTER (WHERE {recent}) AS requests,
    coalesce(sum(tokens) FILTER (WHERE {recent}), 0)::bigint AS tokens
  FROM lease, t WHERE (ended_at IS NULL OR {recent}) AND {scope}
  GROUP BY kind, channel_id, supply_id, channel_epoch, supply_epoch
)
SELECT t.now, groups.* FROM t LEFT JOIN groups ON true
"""
)

FIGURES = """
WITH t AS MATERIALIZED (SELECT {now} AS now)
SELECT kind, channel_id, supply_id, channel_epoch, supply_epoch,
  count(*) FILTER (WHERE ended_at IS NULL AND expires_at > t.now) AS live,
  count(*) FILTER (WHERE {recent}) AS requests,
  coalesce(sum(tokens) FILTER (WHERE {recent}), 0)::bigint AS tokens
FROM lease, t WHERE ended_at IS NULL OR {recent}
GROUP BY kind, channel_id, supply_id, channel_epoch, supply_epoch
"""

WINDOW = """
SELECT reserved_at, tokens FROM lease
WHERE {scope} AND reserved_at > CAST(:now AS timestamptz) - interval '60 seconds' ORDER BY reserved_at, id
"""

KNOWN = "SELECT lease.*, {now} AS now FROM lease WHERE id = :id"

LIVE = """
WITH t AS MATERIALIZED (SELECT {now} AS now)
SELECT lease.* FROM lease, t WHERE ended_at IS NULL AND expires_at > t.now ORDER BY reserved_at, id
"""

RENEW = """
WITH t AS MATERIALIZED (SELECT {now} AS now),
mine AS (
  SELECT id FROM lease, t
  WHERE id = ANY(:ids) AND holder = :holder AND ended_at IS NULL AND expires_at > t.now
  ORDER BY id FOR UPDATE OF lease
)
UPDATE lease SET expires_at = t.now + CAST(:ttl AS interval) FROM t, mine WHERE lease.id = mine.id RETURNING lease.id
"""

RELEASE = """
WITH t AS MATERIALIZED (SELECT {now} AS now)
UPDATE lease SET ended_at = t.now, released = true, tokens = coalesce(CAST(:used AS bigint), tokens) FROM t
WHERE id = :id AND holder = :holder AND ended_at IS NULL AND expires_at > t.now
RETURNING lease.*
"""

SWEEP = "WITH t AS MATERIALIZED (SELECT {now} AS now) " + END_LAPSED

FORGET = """
WITH t AS MATERIALIZED (SELECT {now} AS now)
DELETE FROM lease WHERE id IN (
  SELECT id FROM lease, t
  WHERE reserved_at <= t.now - interval '120 seconds' AND ended_at <= t.now - interval '120 seconds'
  LIMIT 10000 FOR UPDATE OF lease SKIP LOCKED
)
"""

HEAR = """
UPDATE level SET health_epoch = :epoch, health_revision = :revision, health_limit = :limit
WHERE kind = :kind AND id = :id AND NOT retired AND (health_revision IS NULL OR health_revision < :revision)
"""

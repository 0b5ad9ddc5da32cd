"""The statements of the PostgreSQL backend. Time is `server_time()`, a function of the schema: the server's clock.

Laws of this file, and of the function `decide_group` in the migrations:
- a lease stops to count only once it is *marked* as ended. Who wants its slot marks it first; a renewal in flight holds
  the row, is skipped, and the lease counts on. So a lease can never be renewed after its slot was given away;
- who marks, renews or releases several leases locks them in the order of their ids or skips what is locked;
- what counts runs after the levels are locked, so that it sees what earlier groups committed.
"""

RESERVE_ALONE = "SELECT reserve_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS at"

DECIDE = "SELECT * FROM decide_group($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"

END_LAPSED = """
UPDATE lease SET ended_at = expires_at WHERE id IN (
  SELECT id FROM lease, t WHERE ended_at IS NULL AND expires_at <= t.now
  ORDER BY id FOR UPDATE OF lease SKIP LOCKED
) RETURNING id, kind, channel_id, supply_id
"""

FIGURES = """
WITH t AS MATERIALIZED (SELECT server_time() AS now)
SELECT kind, channel_id, supply_id, channel_epoch, supply_epoch,
  count(*) FILTER (WHERE ended_at IS NULL AND expires_at > t.now) AS live,
  count(*) FILTER (WHERE reserved_at > t.now - interval '60 seconds') AS requests,
  coalesce(sum(least(tokens, used_tokens)) FILTER (WHERE reserved_at > t.now - interval '60 seconds'), 0)::bigint
    + coalesce(
      sum(used_tokens - tokens) FILTER (WHERE used_tokens > tokens AND ended_at > t.now - interval '60 seconds'), 0
    )::bigint AS tokens,
  min(reserved_at) FILTER (WHERE reserved_at > t.now - interval '60 seconds') AS oldest_request,
  min(ended_at) FILTER (WHERE used_tokens > tokens AND ended_at > t.now - interval '60 seconds') AS oldest_overuse
FROM lease, t
WHERE ended_at IS NULL OR reserved_at > t.now - interval '60 seconds'
  OR (used_tokens > tokens AND ended_at > t.now - interval '60 seconds')
GROUP BY kind, channel_id, supply_id, channel_epoch, supply_epoch
"""

LIVE_FIGURES = """
WITH t AS MATERIALIZED (SELECT server_time() AS now)
SELECT kind, channel_id, supply_id, channel_epoch, supply_epoch, count(*) AS live, 0 AS requests, 0 AS tokens
FROM lease, t
WHERE ended_at IS NULL AND expires_at > t.now
GROUP BY kind, channel_id, supply_id, channel_epoch, supply_epoch
"""
"""The same without the windows."""

LOOK, LIVE_LOOK = (
    "SELECT level.*, NULL::jsonb AS counts FROM level WHERE NOT retired"
    f" UNION ALL SELECT (NULL::level).*, coalesce(jsonb_agg(counted), '[]') FROM ({figures}) AS counted"
    for figures in (FIGURES, LIVE_FIGURES)
)
"""The declared levels, and a last row with the counts, or those without windows: one snapshot in one round trip."""

KNOWN = "SELECT lease.*, server_time() AS now FROM lease WHERE id = :id"

LIVE = """
WITH t AS MATERIALIZED (SELECT server_time() AS now)
SELECT lease.* FROM lease, t WHERE ended_at IS NULL AND expires_at > t.now ORDER BY reserved_at, id
"""

RENEW = """
WITH t AS MATERIALIZED (SELECT server_time() AS now),
mine AS (
  SELECT id FROM lease, t
  WHERE id = ANY(:ids) AND holder = :holder AND CASE WHEN ended_at IS NULL THEN expires_at > t.now END
  ORDER BY id FOR UPDATE OF lease
)
UPDATE lease SET expires_at = t.now + CAST(:ttl AS interval) FROM t, mine WHERE lease.id = mine.id RETURNING lease.id
"""

SWEEP = "WITH t AS MATERIALIZED (SELECT server_time() AS now) " + END_LAPSED

FORGET = """
WITH t AS MATERIALIZED (SELECT server_time() AS now)
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

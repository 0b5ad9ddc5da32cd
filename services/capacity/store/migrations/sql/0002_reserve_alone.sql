-- A lone reservation to which plainly nothing objects, in two statements: lock, then admit. NULL where anything is out
-- of the ordinary (a shut gate, news of health, a lapsed lease, a total that is due, a known id): then `decide`.
CREATE FUNCTION reserve_alone(
  p_id text, p_holder text, p_kind text, p_channel text, p_supply text, p_tokens bigint, p_ttl interval,
  p_channel_epoch bigint, p_channel_revision bigint, p_supply_epoch bigint, p_supply_revision bigint
) RETURNS timestamptz LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
  locked integer; at timestamptz;
BEGIN
  SELECT count(*) INTO locked FROM (
    SELECT 1 FROM level
    WHERE (kind, id) IN ((1, p_kind), (2, p_channel), (3, p_supply)) AND NOT retired
      AND (
        kind > 1 OR concurrency > 0 OR requests_per_minute > 0 OR tokens_per_minute > 0
        OR health_limit IS NOT NULL
      )
    ORDER BY kind, id FOR UPDATE
  ) AS x;
  WITH t AS MATERIALIZED (SELECT server_time() AS now),
  mine AS (
    SELECT level.kind, level.id, requests_per_minute > 0 OR tokens_per_minute > 0 AS windowed,
      health_limit IS NULL AND pace_limit IS NULL AND coalesce(pace_frozen_until <= t.now, true)
      AND CASE level.kind
        WHEN 1 THEN true
        WHEN 2 THEN health_revision = p_channel_revision AND health_epoch = p_channel_epoch
        ELSE health_revision = p_supply_revision AND health_epoch = p_supply_epoch AND channel_id = p_channel
      END
      AND (requests_per_minute = 0 OR window_requests < requests_per_minute)
      AND (tokens_per_minute = 0 OR window_tokens + p_tokens <= tokens_per_minute)
      AND (
        requests_per_minute = 0 AND tokens_per_minute = 0
        OR window_counted_at > t.now - interval '60 seconds' AND window_from <= t.now - interval '60 seconds'
        AND window_from > t.now - interval '65 seconds'
      )
      AND (concurrency = 0 OR concurrency > CASE level.kind
        WHEN 1 THEN (SELECT count(*) FROM lease e WHERE e.ended_at IS NULL AND e.kind = p_kind)
        WHEN 2 THEN (SELECT count(*) FROM lease e WHERE e.ended_at IS NULL AND e.channel_id = p_channel)
        ELSE (
          SELECT count(*) FROM lease e
          WHERE e.ended_at IS NULL AND e.channel_id = p_channel AND e.supply_id = p_supply
        )
      END) AS open
    FROM level, t
    WHERE (level.kind, level.id) IN ((1, p_kind), (2, p_channel), (3, p_supply)) AND NOT retired
      AND (
        level.kind > 1 OR concurrency > 0 OR requests_per_minute > 0 OR tokens_per_minute > 0
        OR health_limit IS NOT NULL
      )
  ),
  taken AS (
    INSERT INTO lease (
      id, holder, kind, channel_id, supply_id, channel_epoch, supply_epoch, tokens, reserved_at, expires_at, released
    )
    SELECT p_id, p_holder, p_kind, p_channel, p_supply, p_channel_epoch, p_supply_epoch, p_tokens, t.now,
      t.now + p_ttl, false
    FROM t
    WHERE (
      SELECT count(*) = locked AND bool_and(coalesce(open, false)) AND count(*) FILTER (WHERE kind = 2) = 1
        AND count(*) FILTER (WHERE kind = 3) = 1
      FROM mine
    ) AND NOT EXISTS (SELECT 1 FROM lease e WHERE e.ended_at IS NULL AND e.expires_at <= t.now)
    ON CONFLICT DO NOTHING RETURNING reserved_at
  ),
  weighed AS (
    UPDATE level SET window_requests = window_requests + 1, window_tokens = window_tokens + p_tokens
    FROM mine, taken WHERE mine.windowed AND level.kind = mine.kind AND level.id = mine.id
  )
  SELECT reserved_at INTO at FROM taken;
  RETURN at;
END
$function$

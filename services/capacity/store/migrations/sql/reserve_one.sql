-- A lone reservation to which plainly nothing objects: weigh it (which locks its levels in their order), then admit. NULL
-- where anything is out of the ordinary (a shut gate, news of health, a lapsed lease, a total that is due, a known id):
-- then nothing has changed, and `decide_group` looks.
--
-- A release that settles nothing takes no lock of a level, so it may be committed after `t` and before the leases are
-- counted. What is written as the time of the reservation is therefore read by the statement that counts them.
CREATE OR REPLACE FUNCTION reserve_one(
  p_id text, p_holder text, p_kind text, p_channel text, p_supply text, p_tokens bigint, p_ttl interval,
  p_channel_epoch bigint, p_channel_revision bigint, p_supply_epoch bigint, p_supply_revision bigint
) RETURNS timestamptz LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
  found_levels integer; plain boolean; frozen_until timestamptz; first_from timestamptz; last_from timestamptz;
  counted timestamptz; kind_slots integer; channel_slots integer; supply_slots integer; t timestamptz;
BEGIN
  WITH weighed AS (
    UPDATE level SET window_requests = window_requests + 1, window_tokens = window_tokens + p_tokens
    FROM (VALUES (1::smallint, p_kind), (2::smallint, p_channel), (3::smallint, p_supply)) AS x(kind, id)
    WHERE level.kind = x.kind AND level.id = x.id AND NOT retired
      AND (
        level.kind > 1 OR concurrency > 0 OR requests_per_minute > 0 OR tokens_per_minute > 0
        OR health_limit IS NOT NULL
      )
    RETURNING level.*, requests_per_minute > 0 OR tokens_per_minute > 0 AS windowed
  )
  SELECT count(*) FILTER (WHERE kind > 1),
    bool_and(coalesce(
      health_limit IS NULL AND pace_limit IS NULL AND CASE kind
        WHEN 1 THEN true
        WHEN 2 THEN health_revision = p_channel_revision AND health_epoch = p_channel_epoch
        ELSE health_revision = p_supply_revision AND health_epoch = p_supply_epoch AND channel_id = p_channel
      END
      AND (requests_per_minute = 0 OR window_requests <= requests_per_minute)
      AND (tokens_per_minute = 0 OR window_tokens <= tokens_per_minute)
      AND (NOT windowed OR window_from IS NOT NULL AND window_counted_at IS NOT NULL), false
    )),
    max(pace_frozen_until), min(window_from) FILTER (WHERE windowed), max(window_from) FILTER (WHERE windowed),
    min(window_counted_at) FILTER (WHERE windowed), max(concurrency) FILTER (WHERE kind = 1),
    max(concurrency) FILTER (WHERE kind = 2), max(concurrency) FILTER (WHERE kind = 3)
  INTO found_levels, plain, frozen_until, first_from, last_from, counted, kind_slots, channel_slots, supply_slots
  FROM weighed;
  t := server_time();
  IF found_levels = 2 AND plain AND coalesce(frozen_until <= t, true) AND (
    counted IS NULL OR counted > t - interval '60 seconds' AND last_from <= t - interval '60 seconds'
    AND first_from > t - interval '65 seconds'
  ) THEN
    INSERT INTO lease (
      id, holder, kind, channel_id, supply_id, channel_epoch, supply_epoch, tokens, reserved_at, expires_at, released
    )
    SELECT p_id, p_holder, p_kind, p_channel, p_supply, p_channel_epoch, p_supply_epoch, p_tokens, x.now, x.now + p_ttl,
      false
    FROM (SELECT server_time() AS now) AS x
    WHERE NOT EXISTS (SELECT 1 FROM lease e WHERE e.ended_at IS NULL AND e.expires_at <= t)
      AND (coalesce(kind_slots, 0) = 0 OR kind_slots > (
        SELECT count(*) FROM lease e WHERE e.ended_at IS NULL AND e.kind = p_kind
      ))
      AND (channel_slots = 0 OR channel_slots > (
        SELECT count(*) FROM lease e WHERE e.ended_at IS NULL AND e.channel_id = p_channel
      ))
      AND (supply_slots = 0 OR supply_slots > (
        SELECT count(*) FROM lease e
        WHERE e.ended_at IS NULL AND e.channel_id = p_channel AND e.supply_id = p_supply
      ))
    ON CONFLICT DO NOTHING RETURNING reserved_at INTO t;
    IF FOUND THEN
      RETURN t;
    END IF;
  END IF;
  UPDATE level SET window_requests = window_requests - 1, window_tokens = window_tokens - p_tokens
  FROM (VALUES (1::smallint, p_kind), (2::smallint, p_channel), (3::smallint, p_supply)) AS x(kind, id)
  WHERE level.kind = x.kind AND level.id = x.id AND NOT retired
    AND (
      level.kind > 1 OR concurrency > 0 OR requests_per_minute > 0 OR tokens_per_minute > 0
      OR health_limit IS NOT NULL
    );
  RETURN NULL;
END
$function$

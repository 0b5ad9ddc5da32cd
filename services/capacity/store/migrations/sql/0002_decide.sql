-- `services.capacity.domain` says what this must answer; tests/contract/capacity compares the two step by step.
-- Levels are parallel arrays, one element for each that was locked, in the order of locks.
CREATE FUNCTION decide(
  p_kinds text[], p_channels text[], p_supplies text[], p_ids text[], p_reserves jsonb, p_releases jsonb,
  p_settled text[]
) RETURNS SETOF decision LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
  revision_before bigint; revision_now bigint; lapsed boolean; t timestamptz; since timestamptz; n integer := 0;
  keys text[]; l_kind smallint[]; l_id text[]; l_channel text[]; l_slots integer[]; l_rpm integer[]; l_tpm bigint[];
  l_epoch bigint[]; l_rev bigint[]; l_cap integer[];
  l_pace bigint[]; l_ceiling integer[]; l_cut timestamptz[]; l_freeze timestamptz[];
  l_seen timestamptz[]; l_requests bigint[]; l_tokens bigint[]; l_counted timestamptz[];
  l_live bigint[]; l_present bigint[]; l_dirty boolean[];
  w record; q record; r record; l lease; d decision; open_ended decision; timed decision; entries refcursor;
  i integer; j integer; at_level integer[]; views bigint[]; known text[]; a bigint; b bigint; bound bigint; used bigint;
  g text; latest timestamptz; hint timestamptz;
BEGIN
  IF cardinality(p_settled) > 0 THEN
    SELECT p_kinds || array_agg(e.kind), p_channels || array_agg(e.channel_id), p_supplies || array_agg(e.supply_id)
    INTO p_kinds, p_channels, p_supplies
    FROM lease e WHERE e.id = ANY(p_settled);
  END IF;
  SELECT count(*), max(x.revision), array_agg(x.kind || ':' || x.id),
    array_agg(x.kind), array_agg(x.id), array_agg(CASE WHEN x.kind = 2 THEN x.id ELSE x.channel_id END),
    array_agg(x.concurrency), array_agg(x.requests_per_minute), array_agg(x.tokens_per_minute),
    array_agg(x.health_epoch), array_agg(x.health_revision), array_agg(x.health_limit),
    array_agg(x.pace_limit), array_agg(x.pace_ceiling), array_agg(x.pace_cut_at), array_agg(x.pace_frozen_until),
    array_agg(x.window_from), array_agg(x.window_requests), array_agg(x.window_tokens), array_agg(x.window_counted_at),
    array_agg(false)
  INTO n, revision_before, keys, l_kind, l_id, l_channel, l_slots, l_rpm, l_tpm, l_epoch, l_rev, l_cap,
    l_pace, l_ceiling, l_cut, l_freeze, l_seen, l_requests, l_tokens, l_counted, l_dirty
  FROM (
    SELECT level.*, (SELECT revision FROM catalog) AS revision FROM (
      SELECT 1::smallint AS kind, unnest(p_kinds) AS id UNION SELECT 2::smallint, unnest(p_channels)
      UNION SELECT 3::smallint, unnest(p_supplies)
    ) AS wanted JOIN level USING (kind, id)
    WHERE NOT level.retired
      AND (
        level.kind > 1 OR level.concurrency > 0 OR level.requests_per_minute > 0 OR level.tokens_per_minute > 0
        OR level.health_limit IS NOT NULL
      )
    ORDER BY level.kind, level.id FOR UPDATE OF level
  ) AS x;
  t := server_time();
  since := t - interval '60 seconds';
  -- Seen with the locks held: what was committed meanwhile.
  SELECT (SELECT revision FROM catalog), EXISTS (SELECT 1 FROM lease e WHERE e.ended_at IS NULL AND e.expires_at <= t),
    ARRAY(SELECT e.id FROM lease e WHERE e.id = ANY(p_ids))
  INTO revision_now, lapsed, known;
  IF revision_before <> revision_now THEN
    -- A level declared while we waited for locks is not among them: all over again.
    RAISE EXCEPTION 'the catalogue changed' USING ERRCODE = 'serialization_failure';
  END IF;
  IF lapsed AND n > 0 THEN
    UPDATE lease SET ended_at = expires_at WHERE lease.id IN (
      SELECT e.id FROM lease e WHERE e.ended_at IS NULL AND e.expires_at <= t
        AND (e.channel_id = ANY(p_channels) OR e.kind = ANY(p_kinds))
      ORDER BY e.id FOR UPDATE SKIP LOCKED
    );
  END IF;

  -- Live leases are counted as rows, once a group.
  IF n > 0 THEN
    l_live := array_fill(0::bigint, ARRAY[n]); l_present := l_live;
    FOR w IN
      SELECT '2:' || e.channel_id AS upper, '3:' || e.supply_id AS lower, e.channel_epoch, e.supply_epoch,
        count(*) AS live
      FROM lease e WHERE e.ended_at IS NULL AND e.channel_id = ANY(p_channels) GROUP BY 1, 2, 3, 4
      UNION ALL
      SELECT '1:' || e.kind, NULL, 0, NULL, count(*)
      FROM lease e WHERE l_kind[1] = 1 AND e.ended_at IS NULL AND e.kind = ANY(p_kinds) GROUP BY 1
    LOOP
      i := array_position(keys, w.upper);
      IF i IS NOT NULL THEN
        l_live[i] := l_live[i] + w.live;
        IF coalesce(l_epoch[i], 0) = w.channel_epoch THEN
          l_present[i] := l_present[i] + w.live;
        END IF;
      END IF;
      i := array_position(keys, w.lower);
      IF i IS NOT NULL THEN
        l_live[i] := l_live[i] + w.live;
        IF coalesce(l_epoch[i], 0) = w.supply_epoch THEN
          l_present[i] := l_present[i] + w.live;
        END IF;
      END IF;
    END LOOP;
  END IF;

  -- Whatever release was seen above happened before this moment, also by the times that are written.
  t := server_time();

  -- Releases first, so that what they free is used at once; leases are locked in the order of their ids.
  IF p_releases <> '[]' THEN
    FOR q IN
      SELECT * FROM jsonb_to_recordset(p_releases)
        AS x(nth integer, id text, holder text, used bigint, outcome integer, retry bigint)
      ORDER BY x.id, x.nth
    LOOP
      UPDATE lease SET ended_at = t, released = true, used_tokens = q.used
      WHERE lease.id = q.id AND holder = q.holder AND CASE WHEN ended_at IS NULL THEN expires_at > t END
      RETURNING * INTO l; -- a condition that no index of live leases fits: the row is found by its id alone
      IF NOT FOUND THEN
        d := NULL; d.nth := q.nth; d.outcome := 'not_held'; RETURN NEXT d;
        CONTINUE;
      END IF;
      i := array_position(keys, '3:' || l.supply_id);
      IF i IS NOT NULL AND q.outcome = 2 AND q.retry > 0 THEN
        l_freeze[i] := greatest(l_freeze[i], t + q.retry * interval '1 microsecond'); l_dirty[i] := true;
      ELSIF i IS NOT NULL AND q.outcome <> 0 AND (l_cut[i] IS NULL OR l.reserved_at > l_cut[i]) THEN
        IF q.outcome = 2 THEN
          a := least(l_pace[i], l_live[i] * 1000, CASE WHEN l_slots[i] > 0 THEN l_slots[i]::bigint * 1000 END);
          l_pace[i] := greatest(1000, a * 7 / 10); l_ceiling[i] := greatest(l_ceiling[i], l_live[i]); l_cut[i] := t;
          l_dirty[i] := true;
        ELSIF l_pace[i] IS NOT NULL AND l_live[i] * 2000 >= l_pace[i] THEN
          l_pace[i] := l_pace[i] + greatest(1, 1000000 / l_pace[i]); l_dirty[i] := true;
          IF l_pace[i] >= (CASE WHEN l_slots[i] > 0 THEN l_slots[i] ELSE l_ceiling[i] END)::bigint * 1000 THEN
            l_pace[i] := NULL; l_ceiling[i] := 0;
          END IF;
        END IF;
      END IF;
      FOREACH j IN ARRAY ARRAY[
        array_position(keys, '1:' || l.kind), array_position(keys, '2:' || l.channel_id), i
      ] LOOP
        CONTINUE WHEN j IS NULL;
        l_live[j] := l_live[j] - 1;
        IF coalesce(l_epoch[j], 0) = (
          CASE l_kind[j] WHEN 2 THEN l.channel_epoch WHEN 3 THEN l.supply_epoch ELSE 0 END
        ) THEN
          l_present[j] := l_present[j] - 1;
        END IF;
        IF l.used_tokens < l.tokens AND l.reserved_at > l_seen[j] THEN
          l_tokens[j] := l_tokens[j] - (l.tokens - l.used_tokens); l_dirty[j] := true;
        ELSIF l.used_tokens > l.tokens THEN
          l_tokens[j] := l_tokens[j] + (l.used_tokens - l.tokens); l_dirty[j] := true;
        END IF;
      END LOOP;
      d := NULL; d.nth := q.nth; d.outcome := 'released'; d.held := l; RETURN NEXT d;
    END LOOP;
  END IF;

  FOR r IN
    SELECT * FROM jsonb_to_recordset(p_reserves) AS x(
      nth integer, id text, holder text, kind text, channel text, supply text, tokens bigint, ttl bigint, views bigint[]
    ) ORDER BY x.nth
  LOOP
    d := NULL; d.nth := r.nth;
    IF r.id = ANY(known) THEN
      d.outcome := 'known'; RETURN NEXT d;
      CONTINUE;
    END IF;
    at_level := ARRAY[
      array_position(keys, '1:' || r.kind), array_position(keys, '2:' || r.channel),
      array_position(keys, '3:' || r.supply)
    ];
    IF at_level[2] IS NULL THEN
      d.outcome := 'undeclared'; d.kind := 2; d.id := r.channel; RETURN NEXT d;
      CONTINUE;
    ELSIF at_level[3] IS NULL THEN
      d.outcome := 'undeclared'; d.kind := 3; d.id := r.supply; RETURN NEXT d;
      CONTINUE;
    ELSIF l_channel[at_level[3]] <> r.channel THEN
      d.outcome := 'misplaced'; RETURN NEXT d;
      CONTINUE;
    END IF;
    FOREACH i IN ARRAY at_level LOOP
      IF d.outcome IS NULL AND l_tpm[i] > 0 AND r.tokens > l_tpm[i] THEN
        d.outcome := 'too_large'; d.kind := l_kind[i]; d.id := l_id[i]; d.bound := l_tpm[i];
      END IF;
    END LOOP;
    IF d.outcome IS NOT NULL THEN
      RETURN NEXT d;
      CONTINUE;
    END IF;

    open_ended := NULL; timed := NULL; latest := NULL;
    FOR level_number IN 1..3 LOOP
      i := at_level[level_number];
      CONTINUE WHEN i IS NULL;
      IF level_number > 1 THEN
        -- The asker's view of health: epoch, revision, limit; the newer one is kept.
        views := r.views[level_number * 3 - 5 : level_number * 3 - 3];
        IF l_rev[i] IS NULL OR views[2] > l_rev[i] THEN
          IF views[1] <> coalesce(l_epoch[i], 0) THEN
            SELECT count(*) INTO a FROM lease e
            WHERE e.ended_at IS NULL AND e.channel_id = r.channel AND (level_number = 2 OR e.supply_id = r.supply)
              AND CASE level_number WHEN 2 THEN e.channel_epoch ELSE e.supply_epoch END = views[1];
            l_present[i] := a;
          END IF;
          l_epoch[i] := views[1]; l_rev[i] := views[2]; l_cap[i] := views[3]; l_dirty[i] := true;
        END IF;
        IF views[2] < l_rev[i] AND open_ended.gate IS NULL THEN
          open_ended := (NULL, 'refused', l_kind[i], l_id[i], 'stale_health', l_rev[i], views[2], NULL, NULL);
        END IF;
      END IF;
      IF open_ended.gate IS NULL THEN
        IF l_cap[i] IS NOT NULL AND l_present[i] >= l_cap[i] THEN
          g := 'health'; bound := l_cap[i]; used := l_present[i];
        ELSIF l_slots[i] > 0 AND l_live[i] >= l_slots[i] THEN
          g := 'concurrency'; bound := l_slots[i]; used := l_live[i];
        ELSIF l_live[i] >= l_pace[i] / 1000 THEN
          g := 'adaptive'; bound := l_pace[i] / 1000; used := l_live[i];
        ELSE
          g := NULL;
        END IF;
        IF g IS NOT NULL THEN
          open_ended := (NULL, 'refused', l_kind[i], l_id[i], g, bound, used, NULL, NULL);
        END IF;
      END IF;
      IF t < l_freeze[i] AND (latest IS NULL OR l_freeze[i] > latest) THEN
        latest := l_freeze[i];
        timed := (NULL, 'refused', l_kind[i], l_id[i], 'frozen', 0, 0, latest, NULL);
      END IF;
      -- The totals of the windows are sums of rows, with what has left since `l_seen`: that is taken off before they
      -- refuse anybody, or when five seconds of it have come together. Once a minute the rows are counted anew.
      IF (l_rpm[i] > 0 OR l_tpm[i] > 0) AND (
        l_counted[i] IS NULL OR l_counted[i] <= since OR l_seen[i] > since OR l_seen[i] <= since - interval '5 seconds'
        OR l_seen[i] < since AND (
          l_rpm[i] > 0 AND l_requests[i] >= l_rpm[i] OR l_tpm[i] > 0 AND l_tokens[i] + r.tokens > l_tpm[i]
        )
      ) THEN
        IF l_counted[i] IS NULL OR l_counted[i] <= since OR l_seen[i] > since THEN
          IF l_kind[i] = 1 THEN
            SELECT count(*), coalesce(sum(least(e.tokens, e.used_tokens)), 0) INTO a, b FROM lease e
            WHERE e.kind = l_id[i] AND e.reserved_at > since;
            SELECT b + coalesce(sum(e.used_tokens - e.tokens), 0) INTO b FROM lease e
            WHERE e.kind = l_id[i] AND e.used_tokens > e.tokens AND e.ended_at > since;
          ELSE
            SELECT count(*), coalesce(sum(least(e.tokens, e.used_tokens)), 0) INTO a, b FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i]) AND e.reserved_at > since;
            SELECT b + coalesce(sum(e.used_tokens - e.tokens), 0) INTO b FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i]) AND e.used_tokens > e.tokens
              AND e.ended_at > since;
          END IF;
          l_requests[i] := a; l_tokens[i] := b; l_counted[i] := t;
        ELSE
          IF l_kind[i] = 1 THEN
            SELECT count(*), coalesce(sum(least(e.tokens, e.used_tokens)), 0) INTO a, b FROM lease e
            WHERE e.kind = l_id[i] AND e.reserved_at > l_seen[i] AND e.reserved_at <= since;
            SELECT b + coalesce(sum(e.used_tokens - e.tokens), 0) INTO b FROM lease e
            WHERE e.kind = l_id[i] AND e.used_tokens > e.tokens AND e.ended_at > l_seen[i] AND e.ended_at <= since;
          ELSE
            SELECT count(*), coalesce(sum(least(e.tokens, e.used_tokens)), 0) INTO a, b FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i])
              AND e.reserved_at > l_seen[i] AND e.reserved_at <= since;
            SELECT b + coalesce(sum(e.used_tokens - e.tokens), 0) INTO b FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i]) AND e.used_tokens > e.tokens
              AND e.ended_at > l_seen[i] AND e.ended_at <= since;
          END IF;
          l_requests[i] := l_requests[i] - a; l_tokens[i] := l_tokens[i] - b;
        END IF;
        l_seen[i] := since; l_dirty[i] := true;
      END IF;
      IF l_rpm[i] > 0 AND l_requests[i] >= l_rpm[i] THEN
        IF l_kind[i] = 1 THEN
          SELECT e.reserved_at INTO hint FROM lease e WHERE e.kind = l_id[i] AND e.reserved_at > since
          ORDER BY e.reserved_at OFFSET l_requests[i] - l_rpm[i] LIMIT 1;
        ELSE
          SELECT e.reserved_at INTO hint FROM lease e
          WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i]) AND e.reserved_at > since
          ORDER BY e.reserved_at OFFSET l_requests[i] - l_rpm[i] LIMIT 1;
        END IF;
        hint := hint + interval '60 seconds';
        IF hint IS NULL AND open_ended.gate IS NULL THEN
          open_ended := (NULL, 'refused', l_kind[i], l_id[i], 'requests', l_rpm[i], l_requests[i], NULL, NULL);
        ELSIF latest IS NULL OR hint > latest THEN
          latest := hint;
          timed := (NULL, 'refused', l_kind[i], l_id[i], 'requests', l_rpm[i], l_requests[i], latest, NULL);
        END IF;
      END IF;
      IF l_tpm[i] > 0 AND l_tokens[i] + r.tokens > l_tpm[i] THEN
        hint := NULL; a := l_tokens[i];
        IF l_kind[i] = 1 THEN
          OPEN entries FOR
            SELECT e.reserved_at AS at, least(e.tokens, e.used_tokens) AS tokens FROM lease e
            WHERE e.kind = l_id[i] AND e.reserved_at > since
            UNION ALL
            SELECT e.ended_at, e.used_tokens - e.tokens FROM lease e
            WHERE e.kind = l_id[i] AND e.used_tokens > e.tokens AND e.ended_at > since
            ORDER BY 1;
        ELSE
          OPEN entries FOR
            SELECT e.reserved_at AS at, least(e.tokens, e.used_tokens) AS tokens FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i]) AND e.reserved_at > since
            UNION ALL
            SELECT e.ended_at, e.used_tokens - e.tokens FROM lease e
            WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i])
              AND e.used_tokens > e.tokens AND e.ended_at > since
            ORDER BY 1;
        END IF;
        LOOP
          FETCH entries INTO w;
          EXIT WHEN NOT FOUND;
          a := a - w.tokens;
          IF a + r.tokens <= l_tpm[i] THEN
            hint := w.at + interval '60 seconds';
            EXIT;
          END IF;
        END LOOP;
        CLOSE entries;
        IF hint IS NULL AND open_ended.gate IS NULL THEN
          open_ended := (NULL, 'refused', l_kind[i], l_id[i], 'tokens', l_tpm[i], l_tokens[i], NULL, NULL);
        ELSIF latest IS NULL OR hint > latest THEN
          latest := hint;
          timed := (NULL, 'refused', l_kind[i], l_id[i], 'tokens', l_tpm[i], l_tokens[i], latest, NULL);
        END IF;
      END IF;
    END LOOP;
    IF open_ended.gate IS NOT NULL OR timed.gate IS NOT NULL THEN
      d := CASE WHEN open_ended.gate IS NOT NULL THEN open_ended ELSE timed END;
      d.nth := r.nth; d.at := latest; RETURN NEXT d;
      CONTINUE;
    END IF;

    INSERT INTO lease (
      id, holder, kind, channel_id, supply_id, channel_epoch, supply_epoch, tokens, reserved_at, expires_at, released
    ) VALUES (
      r.id, r.holder, r.kind, r.channel, r.supply, r.views[1], r.views[4], r.tokens, t,
      t + r.ttl * interval '1 microsecond', false
    ) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the id was taken meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    FOR level_number IN 1..3 LOOP
      i := at_level[level_number];
      CONTINUE WHEN i IS NULL;
      l_live[i] := l_live[i] + 1;
      IF coalesce(l_epoch[i], 0) = (CASE level_number WHEN 1 THEN 0 ELSE r.views[level_number * 3 - 5] END) THEN
        l_present[i] := l_present[i] + 1;
      END IF;
      IF l_rpm[i] > 0 OR l_tpm[i] > 0 THEN
        l_requests[i] := l_requests[i] + 1; l_tokens[i] := l_tokens[i] + r.tokens; l_dirty[i] := true;
      END IF;
    END LOOP;
    d.outcome := 'admitted'; d.at := t; RETURN NEXT d;
  END LOOP;

  IF true = ANY(l_dirty) THEN
    UPDATE level SET health_epoch = x.epoch, health_revision = x.rev, health_limit = x.cap, pace_limit = x.pace,
      pace_ceiling = x.ceiling, pace_cut_at = x.cut, pace_frozen_until = x.frozen, window_from = x.seen,
      window_requests = x.requests, window_tokens = x.tokens, window_counted_at = x.counted
    FROM unnest(
      l_kind, l_id, l_dirty, l_epoch, l_rev, l_cap, l_pace, l_ceiling, l_cut, l_freeze, l_seen, l_requests, l_tokens,
      l_counted
    ) AS x(
      kind, id, dirty, epoch, rev, cap, pace, ceiling, cut, frozen, seen, requests, tokens, counted
    ) WHERE x.dirty AND level.kind = x.kind AND level.id = x.id;
  END IF;
END
$function$

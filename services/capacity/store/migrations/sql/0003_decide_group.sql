-- Decides a group as `services.capacity.domain` would decide its members one by one, releases first; the contract tests
-- compare the two step by step. What plainly fits is admitted as a set; where a gate is near, or anything is out of the
-- ordinary, the reservations are looked at one by one.
--
-- `w_` are wishes: what is asked for, `w_views` six numbers each (epoch, revision, limit of the Channel, then of the
-- Supply); `r_` are reservations, each an id and the number of its wish; `b_` are leases to give back. Levels (`l_`) are
-- parallel arrays, one element for each that was locked, in the order of locks.
--
-- `at` is when it was decided. `admitted` = all reservations are; otherwise `others` has a decision for each.
-- `gone` are the leases given back, by their number in `b_`, with what they were (parallel arrays).
CREATE FUNCTION decide_group(
  w_holder text[], w_kind text[], w_channel text[], w_supply text[], w_tokens bigint[], w_ttl interval[],
  w_views bigint[], r_ids text[], r_wish integer[],
  b_ids text[], b_holder text[], b_used bigint[], b_outcome integer[], b_retry interval[], b_settles boolean,
  OUT at timestamptz, OUT admitted boolean, OUT others decision[],
  OUT gone integer[], OUT g_kind text[], OUT g_channel text[], OUT g_supply text[], OUT g_channel_epoch bigint[],
  OUT g_supply_epoch bigint[], OUT g_tokens bigint[], OUT g_reserved timestamptz[], OUT g_expires timestamptz[]
) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
  kinds text[] := w_kind; channels text[] := w_channel; supplies text[] := w_supply;
  revision_before bigint; revision_now bigint; lapsed boolean; t timestamptz; since timestamptz; n integer := 0;
  keys text[]; l_kind smallint[]; l_id text[]; l_channel text[]; l_slots integer[]; l_rpm integer[]; l_tpm bigint[];
  l_epoch bigint[]; l_rev bigint[]; l_cap integer[];
  l_pace bigint[]; l_ceiling integer[]; l_cut timestamptz[]; l_freeze timestamptz[];
  l_seen timestamptz[]; l_requests bigint[]; l_tokens bigint[]; l_counted timestamptz[];
  l_live bigint[]; l_present bigint[]; l_dirty boolean[]; l_more bigint[]; l_weight bigint[];
  w record; r record; d decision; open_ended decision; timed decision; entries refcursor;
  i integer; k integer; at_level integer[]; views bigint[]; known text[]; a bigint; b bigint; bound bigint; used bigint;
  g text; latest timestamptz; hint timestamptz; plain boolean; paced boolean;
BEGIN
  IF b_settles THEN
    SELECT kinds || array_agg(x.kind), channels || array_agg(x.channel_id), supplies || array_agg(x.supply_id)
    INTO kinds, channels, supplies
    FROM (SELECT DISTINCT e.kind, e.channel_id, e.supply_id FROM lease e WHERE e.id = ANY(b_ids)) AS x;
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
      SELECT 1::smallint AS kind, unnest(kinds) AS id UNION SELECT 2::smallint, unnest(channels)
      UNION SELECT 3::smallint, unnest(supplies)
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
    ARRAY(SELECT e.id FROM lease e WHERE e.id = ANY(r_ids))
  INTO revision_now, lapsed, known;
  IF revision_before <> revision_now THEN
    -- A level declared while we waited for locks is not among them: all over again.
    RAISE EXCEPTION 'the catalogue changed' USING ERRCODE = 'serialization_failure';
  END IF;
  IF lapsed AND n > 0 THEN
    UPDATE lease SET ended_at = expires_at WHERE lease.id IN (
      SELECT e.id FROM lease e WHERE e.ended_at IS NULL AND e.expires_at <= t
        AND (e.channel_id = ANY(channels) OR e.kind = ANY(kinds))
      ORDER BY e.id FOR UPDATE SKIP LOCKED
    );
  END IF;

  -- Live leases are counted as rows, once a group; all of them are looked through only where their kind is limited.
  IF n > 0 THEN
    l_live := array_fill(0::bigint, ARRAY[n]); l_present := l_live;
    FOR w IN
      SELECT e.kind, e.channel_id AS channel, e.supply_id AS supply, e.channel_epoch, e.supply_epoch, count(*) AS leases
      FROM lease e
      WHERE e.ended_at IS NULL AND l_kind[1] > 1 AND e.channel_id = ANY(channels)
      GROUP BY 1, 2, 3, 4, 5
      UNION ALL
      SELECT e.kind, e.channel_id, e.supply_id, e.channel_epoch, e.supply_epoch, count(*)
      FROM lease e
      WHERE e.ended_at IS NULL AND l_kind[1] = 1 AND (e.kind = ANY(kinds) OR e.channel_id = ANY(channels))
      GROUP BY 1, 2, 3, 4, 5
    LOOP
      FOR level_number IN 1..3 LOOP
        i := array_position(keys, CASE level_number
          WHEN 1 THEN '1:' || w.kind WHEN 2 THEN '2:' || w.channel ELSE '3:' || w.supply
        END);
        CONTINUE WHEN i IS NULL;
        l_live[i] := l_live[i] + w.leases;
        IF coalesce(l_epoch[i], 0) = (
          CASE level_number WHEN 1 THEN 0 WHEN 2 THEN w.channel_epoch ELSE w.supply_epoch END
        ) THEN
          l_present[i] := l_present[i] + w.leases;
        END IF;
      END LOOP;
    END LOOP;
  END IF;

  -- Whatever release was seen above happened before this moment, also by the times that are written.
  t := server_time();

  -- Releases first, so that what they free is used at once; leases are locked in the order of their ids.
  IF cardinality(b_ids) > 0 THEN
    WITH ended AS (
      -- A condition that no index of live leases fits: the row is found by its id alone.
      UPDATE lease SET ended_at = t, released = true, used_tokens = x.used
      FROM (
        SELECT * FROM unnest(b_ids, b_holder, b_used) WITH ORDINALITY AS y(id, holder, used, nth) ORDER BY y.id
      ) AS x
      WHERE lease.id = x.id AND lease.holder = x.holder
        AND CASE WHEN lease.ended_at IS NULL THEN lease.expires_at > t END
      RETURNING x.nth, lease.*
    )
    SELECT array_agg(e.nth), array_agg(e.kind), array_agg(e.channel_id), array_agg(e.supply_id),
      array_agg(e.channel_epoch), array_agg(e.supply_epoch), array_agg(e.tokens), array_agg(e.reserved_at),
      array_agg(e.expires_at)
    INTO gone, g_kind, g_channel, g_supply, g_channel_epoch, g_supply_epoch, g_tokens, g_reserved, g_expires
    FROM ended e;
    -- Pace looks at the slots in use release by release; all else is a sum.
    paced := 2 = ANY(b_outcome);
    FOR i IN 1..n LOOP
      paced := paced OR l_pace[i] IS NOT NULL;
    END LOOP;
    FOR k IN 1..CASE WHEN paced THEN coalesce(cardinality(gone), 0) ELSE 0 END LOOP
      i := array_position(keys, '3:' || g_supply[k]);
      CONTINUE WHEN i IS NULL;
      a := b_outcome[gone[k]];
      IF a = 2 AND b_retry[gone[k]] > interval '0' THEN
        l_freeze[i] := greatest(l_freeze[i], t + b_retry[gone[k]]); l_dirty[i] := true;
      ELSIF a <> 0 AND (l_cut[i] IS NULL OR g_reserved[k] > l_cut[i]) THEN
        IF a = 2 THEN
          b := least(l_pace[i], l_live[i] * 1000, CASE WHEN l_slots[i] > 0 THEN l_slots[i]::bigint * 1000 END);
          l_pace[i] := greatest(1000, b * 7 / 10); l_ceiling[i] := greatest(l_ceiling[i], l_live[i]); l_cut[i] := t;
          l_dirty[i] := true;
        ELSIF l_pace[i] IS NOT NULL AND l_live[i] * 2000 >= l_pace[i] THEN
          l_pace[i] := l_pace[i] + greatest(1, 1000000 / l_pace[i]); l_dirty[i] := true;
          IF l_pace[i] >= (CASE WHEN l_slots[i] > 0 THEN l_slots[i] ELSE l_ceiling[i] END)::bigint * 1000 THEN
            l_pace[i] := NULL; l_ceiling[i] := 0;
          END IF;
        END IF;
      END IF;
      l_live[i] := l_live[i] - 1;
    END LOOP;
    IF gone IS NOT NULL AND n > 0 THEN
      FOR w IN
        SELECT e.kind, e.channel, e.supply, e.channel_epoch, e.supply_epoch, count(*) AS leases,
          sum(greatest(b_used[e.nth] - e.tokens, 0))::bigint AS above,
          sum(least(b_used[e.nth] - e.tokens, 0))::bigint AS below, min(e.reserved) AS oldest
        FROM unnest(
          gone, g_kind, g_channel, g_supply, g_channel_epoch, g_supply_epoch, g_tokens, g_reserved
        ) AS e(nth, kind, channel, supply, channel_epoch, supply_epoch, tokens, reserved) GROUP BY 1, 2, 3, 4, 5
      LOOP
        FOR level_number IN 1..3 LOOP
          i := array_position(keys, CASE level_number
            WHEN 1 THEN '1:' || w.kind WHEN 2 THEN '2:' || w.channel ELSE '3:' || w.supply
          END);
          CONTINUE WHEN i IS NULL;
          IF level_number < 3 OR NOT paced THEN -- else it is taken off already
            l_live[i] := l_live[i] - w.leases;
          END IF;
          IF coalesce(l_epoch[i], 0) = (
            CASE level_number WHEN 1 THEN 0 WHEN 2 THEN w.channel_epoch ELSE w.supply_epoch END
          ) THEN
            l_present[i] := l_present[i] - w.leases;
          END IF;
          b := w.below;
          IF b < 0 AND w.oldest <= l_seen[i] THEN -- what was reserved before the window began has left it
            SELECT coalesce(sum(least(b_used[e.nth] - e.tokens, 0)), 0) INTO b
            FROM unnest(
              gone, g_kind, g_channel, g_supply, g_channel_epoch, g_supply_epoch, g_tokens, g_reserved
            ) AS e(nth, kind, channel, supply, channel_epoch, supply_epoch, tokens, reserved)
            WHERE e.reserved > l_seen[i] AND (e.kind, e.channel, e.supply) = (w.kind, w.channel, w.supply)
              AND (e.channel_epoch, e.supply_epoch) = (w.channel_epoch, w.supply_epoch);
          ELSIF l_seen[i] IS NULL THEN
            b := 0;
          END IF;
          IF w.above + b <> 0 THEN
            l_tokens[i] := l_tokens[i] + w.above + b; l_dirty[i] := true;
          END IF;
        END LOOP;
      END LOOP;
    END IF;
  END IF;

  -- What all ask for together: where every gate has room for the sum, nobody is in anybody's way.
  at := t; admitted := true;
  IF cardinality(r_ids) > 0 THEN
    plain := cardinality(known) = 0;
    IF n > 0 THEN
      l_more := array_fill(0::bigint, ARRAY[n]); l_weight := l_more;
    END IF;
    FOR w IN SELECT x.wish, count(*) AS asks FROM unnest(r_wish) AS x(wish) GROUP BY 1 LOOP
      EXIT WHEN NOT plain;
      k := w.wish;
      FOR level_number IN 1..3 LOOP
        i := array_position(keys, CASE level_number
          WHEN 1 THEN '1:' || w_kind[k] WHEN 2 THEN '2:' || w_channel[k] ELSE '3:' || w_supply[k]
        END);
        IF i IS NOT NULL THEN
          l_more[i] := l_more[i] + w.asks; l_weight[i] := l_weight[i] + w.asks * w_tokens[k];
        END IF;
        -- A view of health that says neither more nor less than is known, of a level that is declared.
        plain := plain AND (
          level_number = 1 OR i IS NOT NULL AND l_rev[i] IS NOT DISTINCT FROM w_views[k * 6 + level_number * 3 - 10]
          AND coalesce(l_epoch[i], 0) = w_views[k * 6 + level_number * 3 - 11]
        ) AND (level_number < 3 OR l_channel[i] = w_channel[k]);
      END LOOP;
    END LOOP;
    FOR i IN 1..n LOOP
      EXIT WHEN NOT plain;
      plain := l_more[i] = 0 OR (l_cap[i] IS NULL OR l_present[i] + l_more[i] <= l_cap[i])
        AND (l_slots[i] = 0 OR l_live[i] + l_more[i] <= l_slots[i])
        AND (l_pace[i] IS NULL OR l_live[i] + l_more[i] <= l_pace[i] / 1000)
        AND (l_freeze[i] IS NULL OR l_freeze[i] <= t)
        AND (l_rpm[i] = 0 OR l_requests[i] + l_more[i] <= l_rpm[i])
        AND (l_tpm[i] = 0 OR l_tokens[i] + l_weight[i] <= l_tpm[i])
        AND (
          l_rpm[i] = 0 AND l_tpm[i] = 0 OR l_counted[i] > since AND l_seen[i] <= since
          AND l_seen[i] > since - interval '5 seconds'
        );
    END LOOP;
    plain := coalesce(plain, false);
    IF plain THEN
      INSERT INTO lease (
        id, holder, kind, channel_id, supply_id, channel_epoch, supply_epoch, tokens, reserved_at, expires_at, released
      )
      SELECT x.id, w_holder[x.k], w_kind[x.k], w_channel[x.k], w_supply[x.k], w_views[x.k * 6 - 5],
        w_views[x.k * 6 - 2], w_tokens[x.k], t, t + w_ttl[x.k], false
      FROM unnest(r_ids, r_wish) AS x(id, k)
      ON CONFLICT DO NOTHING;
      GET DIAGNOSTICS k = ROW_COUNT;
      IF k < cardinality(r_ids) THEN
        RAISE EXCEPTION 'an id was taken meanwhile' USING ERRCODE = 'serialization_failure';
      END IF;
      FOR i IN 1..n LOOP
        IF l_more[i] > 0 AND (l_rpm[i] > 0 OR l_tpm[i] > 0) THEN
          l_requests[i] := l_requests[i] + l_more[i]; l_tokens[i] := l_tokens[i] + l_weight[i]; l_dirty[i] := true;
        END IF;
      END LOOP;
    ELSE
      admitted := false;
    END IF;
  END IF;

  IF NOT admitted THEN
    FOR r IN
      SELECT x.nth::integer AS nth, x.id, w_holder[x.k] AS holder, w_kind[x.k] AS kind, w_channel[x.k] AS channel,
        w_supply[x.k] AS supply, w_tokens[x.k] AS tokens, w_ttl[x.k] AS ttl, w_views[x.k * 6 - 5 : x.k * 6] AS views
      FROM unnest(r_ids, r_wish) WITH ORDINALITY AS x(id, k, nth) ORDER BY x.nth
    LOOP
      d := NULL; d.nth := r.nth;
      IF r.id = ANY(known) THEN
        d.outcome := 'known'; others := others || d;
        CONTINUE;
      END IF;
      at_level := ARRAY[
        array_position(keys, '1:' || r.kind), array_position(keys, '2:' || r.channel),
        array_position(keys, '3:' || r.supply)
      ];
      IF at_level[2] IS NULL THEN
        d.outcome := 'undeclared'; d.kind := 2; d.id := r.channel; others := others || d;
        CONTINUE;
      ELSIF at_level[3] IS NULL THEN
        d.outcome := 'undeclared'; d.kind := 3; d.id := r.supply; others := others || d;
        CONTINUE;
      ELSIF l_channel[at_level[3]] <> r.channel THEN
        d.outcome := 'misplaced'; others := others || d;
        CONTINUE;
      END IF;
      FOREACH i IN ARRAY at_level LOOP
        IF d.outcome IS NULL AND l_tpm[i] > 0 AND r.tokens > l_tpm[i] THEN
          d.outcome := 'too_large'; d.kind := l_kind[i]; d.id := l_id[i]; d.bound := l_tpm[i];
        END IF;
      END LOOP;
      IF d.outcome IS NOT NULL THEN
        others := others || d;
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
          l_counted[i] IS NULL OR l_counted[i] <= since OR l_seen[i] > since
          OR l_seen[i] <= since - interval '5 seconds'
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
              WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i])
                AND e.used_tokens > e.tokens AND e.ended_at > since;
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
              WHERE e.channel_id = l_channel[i] AND (l_kind[i] = 2 OR e.supply_id = l_id[i])
                AND e.used_tokens > e.tokens AND e.ended_at > l_seen[i] AND e.ended_at <= since;
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
        d.nth := r.nth; d.at := latest; others := others || d;
        CONTINUE;
      END IF;

      INSERT INTO lease (
        id, holder, kind, channel_id, supply_id, channel_epoch, supply_epoch, tokens, reserved_at, expires_at, released
      ) VALUES (
        r.id, r.holder, r.kind, r.channel, r.supply, r.views[1], r.views[4], r.tokens, t, t + r.ttl, false
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
      d.outcome := 'admitted'; d.at := t; others := others || d;
    END LOOP;
  END IF;

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

-- What attempts ended as, and the counts that follow, where nothing has moved on since the rows were read: the answer is
-- the transaction that wrote them. Where something has, or one of the attempts was known already, nothing is written and
-- the answer is NULL. The order of locks is that of every unit: outcomes, then Channels by id, then Supplies by id.
CREATE FUNCTION settle_outcomes(
  attempt_ids text[], outcome_channels text[], outcome_supplies text[], channel_epochs bigint[], supply_epochs bigint[],
  categories text[], scopes text[], codes text[], retry_afters double precision[],
  observed timestamptz[], dispatched timestamptz[],
  channels text[], channel_versions xid[], channel_tallies text[],
  supplies text[], supply_versions xid[], supply_tallies text[]
) RETURNS xid LANGUAGE plpgsql AS $$
DECLARE
  claimed text[];
  held_channels bigint;
  held_supplies bigint;
  written bigint;
BEGIN
  WITH new AS (
    INSERT INTO outcome (
      attempt_id, channel_id, supply_id, channel_epoch, supply_epoch,
      category, scope, code, retry_after_s, observed_at, dispatched_at
    )
    SELECT g.* FROM unnest(
      attempt_ids, outcome_channels, outcome_supplies, channel_epochs, supply_epochs,
      categories, scopes, codes, retry_afters, observed, dispatched
    ) AS g(attempt) ORDER BY g.attempt
    ON CONFLICT DO NOTHING RETURNING attempt_id
  )
  SELECT coalesce(array_agg(attempt_id), '{}') INTO claimed FROM new;

  IF cardinality(claimed) = cardinality(attempt_ids) THEN
    SELECT count(*) INTO held_channels FROM (
      SELECT id, h.xmin AS version FROM channel_health h WHERE id = ANY (channels) ORDER BY id FOR UPDATE
    ) held JOIN unnest(channels, channel_versions) AS g(id, version) USING (id, version);
    SELECT count(*) INTO held_supplies FROM (
      SELECT id, h.xmin AS version FROM supply_health h WHERE id = ANY (supplies) ORDER BY id FOR UPDATE
    ) held JOIN unnest(supplies, supply_versions) AS g(id, version) USING (id, version);

    IF held_channels = cardinality(channels) AND held_supplies = cardinality(supplies) THEN
      UPDATE channel_health h SET tally = CAST(g.tally AS jsonb)
        FROM unnest(channels, channel_versions, channel_tallies) AS g(id, version, tally)
        WHERE h.id = g.id AND h.xmin = g.version;
      GET DIAGNOSTICS written = ROW_COUNT;
      held_channels := held_channels - written;
      UPDATE supply_health h SET tally = CAST(g.tally AS jsonb)
        FROM unnest(supplies, supply_versions, supply_tallies) AS g(id, version, tally)
        WHERE h.id = g.id AND h.xmin = g.version;
      GET DIAGNOSTICS written = ROW_COUNT;
      IF held_channels <> 0 OR held_supplies <> written THEN
        RAISE serialization_failure USING MESSAGE = 'a row of health changed while it was locked';
      END IF;
      RETURN CAST(pg_current_xact_id() AS xid);
    END IF;
  END IF;

  DELETE FROM outcome WHERE attempt_id = ANY (claimed);
  RETURN NULL;
END
$$;

-- New Holds and settlements of Holds that are held, of branches that nothing limits and that the caller has locked: each is
-- moved whatever the others do, so every budget is written once, and its entries are numbered in the order asked.
CREATE FUNCTION move_unlimited(p_asks jsonb, p_which integer[], p_at timestamptz)
RETURNS TABLE (nth integer, answer jsonb) LANGUAGE sql VOLATILE
AS $function$
  WITH asked AS MATERIALIZED (
    SELECT x.*, b.path, b.id AS leaf_id, b.currency AS unit,
      CASE WHEN x.currency = '' THEN 0 ELSE (x.worth ->> b.currency)::numeric END AS amount,
      x.op = 'hold' AS takes,
      known.cost AS was_cost, known.attempts AS was_attempts, known.review_minutes AS was_minutes
    FROM jsonb_to_recordset(p_asks) AS x(
      nth integer, op text, id text, budget text, cost numeric, currency text, attempts bigint, minutes bigint,
      worth jsonb, words text
    )
    LEFT JOIN hold known ON known.id = x.id
    JOIN budget b ON b.id = coalesce(known.budget_id, x.budget)
    WHERE x.nth = ANY(p_which)
  ), moves AS MATERIALIZED (
    SELECT a.*,
      CASE WHEN takes THEN amount ELSE -was_cost END AS held_cost,
      CASE WHEN takes THEN attempts ELSE -was_attempts END AS held_attempts,
      CASE WHEN takes THEN minutes ELSE -was_minutes END AS held_minutes,
      CASE WHEN takes THEN 0 ELSE amount END AS spent_cost,
      CASE WHEN takes THEN 0 ELSE attempts END AS spent_attempts,
      CASE WHEN takes THEN 0 ELSE minutes END AS spent_minutes
    FROM asked a
  ), made AS (
    INSERT INTO hold (
      id, budget_id, currency, asked_cost, asked_currency, cost, attempts, review_minutes, state, subject, created_at
    ) SELECT id, leaf_id, unit, cost, currency, amount, attempts, minutes, 'held', words, p_at FROM moves WHERE takes
    ON CONFLICT DO NOTHING RETURNING hold.*
  ), settled AS (
    UPDATE hold SET state = 'settled', settled_cost = m.amount, settled_attempts = m.attempts,
      settled_review_minutes = m.minutes, settled_asked_cost = m.cost, settled_asked_currency = m.currency,
      finished_at = p_at
    FROM moves m WHERE hold.id = m.id AND NOT m.takes RETURNING hold.*
  ), sums AS (
    SELECT level.id, count(*) AS entries, sum(held_cost) AS held_cost, sum(held_attempts) AS held_attempts,
      sum(held_minutes) AS held_minutes, sum(spent_cost) AS spent_cost, sum(spent_attempts) AS spent_attempts,
      sum(spent_minutes) AS spent_minutes
    FROM moves CROSS JOIN LATERAL unnest(moves.path) AS level(id) GROUP BY level.id
  ), written AS (
    UPDATE budget SET
      held_cost = budget.held_cost + s.held_cost, held_attempts = budget.held_attempts + s.held_attempts,
      held_review_minutes = held_review_minutes + s.held_minutes,
      spent_cost = budget.spent_cost + s.spent_cost, spent_attempts = budget.spent_attempts + s.spent_attempts,
      spent_review_minutes = spent_review_minutes + s.spent_minutes,
      revision = revision + s.entries
    FROM sums s WHERE budget.id = s.id RETURNING budget.id, budget.revision - s.entries AS before
  ), entered AS (
    INSERT INTO entry (
      budget_id, sequence, kind, hold_id, held_cost, held_attempts, held_review_minutes, spent_cost, spent_attempts,
      spent_review_minutes, reason, request_id, created_at
    )
    SELECT w.id, w.before + row_number() OVER (PARTITION BY w.id ORDER BY m.nth), m.op, m.id, m.held_cost,
      m.held_attempts, m.held_minutes, m.spent_cost, m.spent_attempts, m.spent_minutes, m.words, '', p_at
    FROM moves m CROSS JOIN LATERAL unnest(m.path) AS level(id) JOIN written w ON w.id = level.id
  ), after AS (
    SELECT made.* FROM made UNION ALL SELECT settled.* FROM settled
  )
  SELECT m.nth, jsonb_build_object('outcome', 'moved', 'told', '[]'::jsonb, 'soft', '[]'::jsonb, 'hold', to_jsonb(after))
  FROM after JOIN moves m ON m.id = after.id
$function$

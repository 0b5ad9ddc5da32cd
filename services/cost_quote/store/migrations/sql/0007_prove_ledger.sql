-- `services.cost_quote.domain.checking` from checkpoint to checkpoint: a row for each contradiction, and every budget
-- without one has its checkpoint moved to the revision that this statement saw. The budget `p_anew` is read from its first
-- entry. Nothing here waits for Holds or lets them wait: budgets, entries and Holds are read in one snapshot, and none is
-- locked. Of two looks at once the later revision stays; both write in the order of the budgets' ids.
--
-- Up to its checkpoint a budget is proven, and its entries cannot change. So what is read is what came after:
-- - numbering, figures never below zero, sums and the hard limit go on from the checkpoint's sums;
-- - held: the open Holds of the branch are all read each time;
-- - spent: every Hold with entries here has booked exactly what they booked. Where one of them takes, enlarges, settles or
--   releases it, they are all that ever booked under it; where they only correct what was booked before the checkpoint, the
--   sum is not known here, and the Hold must have been settled;
-- - spent, at the levels above: the same, and what entries of Holds of the budget itself booked (`own`), with what is
--   spent below it, is what is spent. So no level was passed over: a budget without children is proven Hold by Hold, a
--   parent by it and by its children. Entries are compared with entries, so that a hand at a child's row is told once.
-- What is proven is not read again: a hand in the past, and a Hold that no entry tells of, are found by reading anew and by
-- the view `ledger_mismatch`.
--
-- The settings: however many rows the planner expects, what is new is found by index, entries of a budget in their order
-- and Holds by id (`OFFSET 0` keeps it from joining them otherwise), and the rest is joined by hash, not row by row.
CREATE FUNCTION prove_ledger(p_anew text) RETURNS TABLE (budget_id text, number bigint, what text)
LANGUAGE sql VOLATILE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off
AS $function$
  WITH known AS MATERIALIZED (
    SELECT b.*, coalesce(c.sequence, 0) AS since, c.whole_at,
      coalesce(c.held_cost, 0) AS was_held_cost, coalesce(c.held_attempts, 0) AS was_held_attempts,
      coalesce(c.held_review_minutes, 0) AS was_held_minutes,
      coalesce(c.spent_cost, 0) AS was_spent_cost, coalesce(c.spent_attempts, 0) AS was_spent_attempts,
      coalesce(c.spent_review_minutes, 0) AS was_spent_minutes,
      coalesce(c.beyond_cost, 0) AS was_beyond_cost, coalesce(c.beyond_attempts, 0) AS was_beyond_attempts,
      coalesce(c.beyond_review_minutes, 0) AS was_beyond_minutes,
      coalesce(c.own_cost, 0) AS was_own_cost, coalesce(c.own_attempts, 0) AS was_own_attempts,
      coalesce(c.own_review_minutes, 0) AS was_own_minutes
    FROM budget b LEFT JOIN checkpoint c ON c.budget_id = b.id AND c.budget_id IS DISTINCT FROM p_anew
  ), moved AS (
    SELECT k.id AS budget_id, m.*
    FROM known k CROSS JOIN LATERAL (
      SELECT count(*) AS entries, max(sequence) AS last,
        sum(held_cost) AS held_cost, sum(held_attempts) AS held_attempts, sum(held_review_minutes) AS held_minutes,
        sum(spent_cost) AS spent_cost, sum(spent_attempts) AS spent_attempts, sum(spent_review_minutes) AS spent_minutes,
        sum(greatest(0, held_cost + spent_cost)) FILTER (WHERE booked) AS beyond_cost,
        sum(greatest(0, held_attempts + spent_attempts)) FILTER (WHERE booked) AS beyond_attempts,
        sum(greatest(0, held_review_minutes + spent_review_minutes)) FILTER (WHERE booked) AS beyond_minutes,
        bool_or(least(run_cost, run_attempts, run_minutes) < 0) AS below_nothing
      FROM (
        SELECT entry.*, kind IN ('settle', 'correction') AS booked,
          k.was_held_cost + sum(held_cost) OVER steps AS run_cost,
          k.was_held_attempts + sum(held_attempts) OVER steps AS run_attempts,
          k.was_held_minutes + sum(held_review_minutes) OVER steps AS run_minutes
        FROM entry WHERE entry.budget_id = k.id AND entry.sequence > k.since WINDOW steps AS (ORDER BY sequence)
      ) AS e
    ) AS m
    WHERE k.revision <> k.since
  ), proven AS (
    SELECT k.id AS budget_id, p.*
    FROM known k CROSS JOIN LATERAL (
      SELECT sum(m.cost) FILTER (WHERE h.budget_id = k.id) AS own_cost,
        sum(m.attempts) FILTER (WHERE h.budget_id = k.id) AS own_attempts,
        sum(m.minutes) FILTER (WHERE h.budget_id = k.id) AS own_minutes,
        bool_or(CASE
          WHEN m.entire THEN (m.cost, m.attempts, m.minutes) IS DISTINCT FROM
            (coalesce(h.settled_cost, 0), coalesce(h.settled_attempts, 0), coalesce(h.settled_review_minutes, 0))
          ELSE h.settled_cost IS NULL
        END) AS differ
      FROM (
        SELECT hold_id, sum(spent_cost) AS cost, sum(spent_attempts) AS attempts, sum(spent_review_minutes) AS minutes,
          bool_or(kind <> 'correction') AS entire
        FROM entry WHERE entry.budget_id = k.id AND entry.sequence > k.since AND kind <> 'limit' GROUP BY hold_id
      ) AS m LEFT JOIN LATERAL (SELECT * FROM hold WHERE hold.id = m.hold_id OFFSET 0) AS h ON true
    ) AS p
    WHERE k.revision <> k.since
  ), holding AS (
    SELECT level.id AS budget_id, sum(h.cost) AS cost, sum(h.attempts) AS attempts, sum(h.review_minutes) AS minutes
    FROM hold h JOIN budget leaf ON leaf.id = h.budget_id CROSS JOIN LATERAL unnest(leaf.path) AS level(id)
    WHERE h.state = 'held' GROUP BY level.id
  ), reached AS MATERIALIZED (
    SELECT k.*, coalesce(m.entries, 0) AS entries, coalesce(m.last, k.since) AS last,
      coalesce(m.below_nothing, false) AS below_nothing, coalesce(p.differ, false) AS differ,
      was_held_cost + coalesce(m.held_cost, 0) AS sum_held_cost,
      was_held_attempts + coalesce(m.held_attempts, 0) AS sum_held_attempts,
      was_held_minutes + coalesce(m.held_minutes, 0) AS sum_held_minutes,
      was_spent_cost + coalesce(m.spent_cost, 0) AS sum_spent_cost,
      was_spent_attempts + coalesce(m.spent_attempts, 0) AS sum_spent_attempts,
      was_spent_minutes + coalesce(m.spent_minutes, 0) AS sum_spent_minutes,
      was_beyond_cost + coalesce(m.beyond_cost, 0) AS sum_beyond_cost,
      was_beyond_attempts + coalesce(m.beyond_attempts, 0) AS sum_beyond_attempts,
      was_beyond_minutes + coalesce(m.beyond_minutes, 0) AS sum_beyond_minutes,
      was_own_cost + coalesce(p.own_cost, 0) AS sum_own_cost,
      was_own_attempts + coalesce(p.own_attempts, 0) AS sum_own_attempts,
      was_own_minutes + coalesce(p.own_minutes, 0) AS sum_own_minutes
    FROM known k LEFT JOIN moved m ON m.budget_id = k.id LEFT JOIN proven p ON p.budget_id = k.id
  ), below AS (
    SELECT r.path[cardinality(r.path) - 1] AS parent_id, sum(sum_spent_cost) AS cost,
      sum(sum_spent_attempts) AS attempts, sum(sum_spent_minutes) AS minutes
    FROM reached r GROUP BY 1
  ), found AS MATERIALIZED (
    SELECT b.id, b.number, finding.what
    FROM reached b
    LEFT JOIN holding h ON h.budget_id = b.id
    LEFT JOIN below ON below.parent_id = b.id
    LEFT JOIN reached parent ON parent.id = b.parent_id
    CROSS JOIN LATERAL (VALUES
      ((b.revision - b.since, b.revision) IS DISTINCT FROM (b.entries, b.last),
        'its entries are not numbered 1 to its revision'),
      (b.below_nothing, 'less than nothing is held after one of its entries'),
      ((b.held_cost, b.held_attempts, b.held_review_minutes, b.spent_cost, b.spent_attempts, b.spent_review_minutes)
        IS DISTINCT FROM (
          b.sum_held_cost, b.sum_held_attempts, b.sum_held_minutes,
          b.sum_spent_cost, b.sum_spent_attempts, b.sum_spent_minutes
        ), 'its entries do not sum up to what is held and spent'),
      (b.differ
        OR (b.held_cost, b.held_attempts, b.held_review_minutes)
          IS DISTINCT FROM (coalesce(h.cost, 0), coalesce(h.attempts, 0), coalesce(h.minutes, 0))
        OR (b.sum_spent_cost, b.sum_spent_attempts, b.sum_spent_minutes) IS DISTINCT FROM (
          b.sum_own_cost + coalesce(below.cost, 0), b.sum_own_attempts + coalesce(below.attempts, 0),
          b.sum_own_minutes + coalesce(below.minutes, 0)
        ), 'its Holds do not sum up to what is held and spent'),
      (b.hard_cost > 0 AND b.spent_cost + b.held_cost - b.sum_beyond_cost > b.hard_cost,
        'cost is beyond the hard limit'),
      (b.hard_attempts > 0 AND b.spent_attempts + b.held_attempts - b.sum_beyond_attempts > b.hard_attempts,
        'attempts is beyond the hard limit'),
      (b.hard_review_minutes > 0
        AND b.spent_review_minutes + b.held_review_minutes - b.sum_beyond_minutes > b.hard_review_minutes,
        'review_minutes is beyond the hard limit'),
      (b.path IS DISTINCT FROM coalesce(parent.path, '{}') || b.id OR (parent.id IS NULL) <> (b.parent_id = ''),
        'it does not hang where its path says'),
      (parent.currency <> b.currency OR parent.number >= b.number,
        'it differs from its parent in currency, or is older')
    ) AS finding(wrong, what)
    WHERE finding.wrong
  ), kept AS (
    INSERT INTO checkpoint (
      budget_id, sequence, held_cost, held_attempts, held_review_minutes, spent_cost, spent_attempts,
      spent_review_minutes, beyond_cost, beyond_attempts, beyond_review_minutes, own_cost, own_attempts,
      own_review_minutes, whole_at
    )
    SELECT r.id, r.revision, r.sum_held_cost, r.sum_held_attempts, r.sum_held_minutes, r.sum_spent_cost,
      r.sum_spent_attempts, r.sum_spent_minutes, r.sum_beyond_cost, r.sum_beyond_attempts, r.sum_beyond_minutes,
      r.sum_own_cost, r.sum_own_attempts, r.sum_own_minutes, coalesce(r.whole_at, server_time())
    FROM reached r
    WHERE r.revision > r.since AND r.id NOT IN (SELECT found.id FROM found)
    ORDER BY r.id
    ON CONFLICT ON CONSTRAINT checkpoint_pkey DO UPDATE SET
      sequence = excluded.sequence,
      held_cost = excluded.held_cost, held_attempts = excluded.held_attempts,
      held_review_minutes = excluded.held_review_minutes,
      spent_cost = excluded.spent_cost, spent_attempts = excluded.spent_attempts,
      spent_review_minutes = excluded.spent_review_minutes,
      beyond_cost = excluded.beyond_cost, beyond_attempts = excluded.beyond_attempts,
      beyond_review_minutes = excluded.beyond_review_minutes,
      own_cost = excluded.own_cost, own_attempts = excluded.own_attempts,
      own_review_minutes = excluded.own_review_minutes
    WHERE checkpoint.sequence < excluded.sequence
  )
  SELECT found.id, found.number, found.what FROM found
$function$

-- `services.cost_quote.domain.checking` in SQL: a row for each contradiction, none in a sound ledger.
CREATE VIEW ledger_mismatch AS
WITH moved AS (
  SELECT budget_id, count(*) AS entries, max(sequence) AS last,
    sum(held_cost) AS held_cost, sum(held_attempts) AS held_attempts, sum(held_review_minutes) AS held_review_minutes,
    sum(spent_cost) AS spent_cost, sum(spent_attempts) AS spent_attempts,
    sum(spent_review_minutes) AS spent_review_minutes,
    coalesce(sum(greatest(0, held_cost + spent_cost)) FILTER (WHERE booked), 0) AS beyond_cost,
    coalesce(sum(greatest(0, held_attempts + spent_attempts)) FILTER (WHERE booked), 0) AS beyond_attempts,
    coalesce(sum(greatest(0, held_review_minutes + spent_review_minutes)) FILTER (WHERE booked), 0)
      AS beyond_review_minutes,
    coalesce(bool_or(least(run_cost, run_attempts, run_review_minutes) < 0), false) AS below_nothing
  FROM (
    SELECT entry.*, kind IN ('settle', 'correction') AS booked,
      sum(held_cost) OVER steps AS run_cost, sum(held_attempts) OVER steps AS run_attempts,
      sum(held_review_minutes) OVER steps AS run_review_minutes
    FROM entry WINDOW steps AS (PARTITION BY budget_id ORDER BY sequence)
  ) AS e GROUP BY budget_id
), holding AS (
  SELECT level.id AS budget_id,
    sum(h.cost) FILTER (WHERE h.state = 'held') AS held_cost,
    sum(h.attempts) FILTER (WHERE h.state = 'held') AS held_attempts,
    sum(h.review_minutes) FILTER (WHERE h.state = 'held') AS held_review_minutes,
    sum(h.settled_cost) AS spent_cost, sum(h.settled_attempts) AS spent_attempts,
    sum(h.settled_review_minutes) AS spent_review_minutes
  FROM hold h JOIN budget leaf ON leaf.id = h.budget_id CROSS JOIN LATERAL unnest(leaf.path) AS level(id)
  GROUP BY level.id
)
SELECT b.id AS budget_id, b.number, found.what
FROM budget b
LEFT JOIN moved m ON m.budget_id = b.id
LEFT JOIN holding h ON h.budget_id = b.id
LEFT JOIN budget parent ON parent.id = b.parent_id
CROSS JOIN LATERAL (VALUES
  ((b.revision, b.revision) IS DISTINCT FROM (coalesce(m.entries, 0), coalesce(m.last, 0)),
    'its entries are not numbered 1 to its revision'),
  (coalesce(m.below_nothing, false), 'less than nothing is held after one of its entries'),
  ((b.held_cost, b.held_attempts, b.held_review_minutes, b.spent_cost, b.spent_attempts, b.spent_review_minutes)
    IS DISTINCT FROM (
      coalesce(m.held_cost, 0), coalesce(m.held_attempts, 0), coalesce(m.held_review_minutes, 0),
      coalesce(m.spent_cost, 0), coalesce(m.spent_attempts, 0), coalesce(m.spent_review_minutes, 0)
    ), 'its entries do not sum up to what is held and spent'),
  ((b.held_cost, b.held_attempts, b.held_review_minutes, b.spent_cost, b.spent_attempts, b.spent_review_minutes)
    IS DISTINCT FROM (
      coalesce(h.held_cost, 0), coalesce(h.held_attempts, 0), coalesce(h.held_review_minutes, 0),
      coalesce(h.spent_cost, 0), coalesce(h.spent_attempts, 0), coalesce(h.spent_review_minutes, 0)
    ), 'its Holds do not sum up to what is held and spent'),
  (b.hard_cost > 0 AND b.spent_cost + b.held_cost - coalesce(m.beyond_cost, 0) > b.hard_cost,
    'cost is beyond the hard limit'),
  (b.hard_attempts > 0 AND b.spent_attempts + b.held_attempts - coalesce(m.beyond_attempts, 0) > b.hard_attempts,
    'attempts is beyond the hard limit'),
  (b.hard_review_minutes > 0
    AND b.spent_review_minutes + b.held_review_minutes - coalesce(m.beyond_review_minutes, 0) > b.hard_review_minutes,
    'review_minutes is beyond the hard limit'),
  (b.path IS DISTINCT FROM coalesce(parent.path, '{}') || b.id OR (parent.id IS NULL) <> (b.parent_id = ''),
    'it does not hang where its path says'),
  (parent.currency <> b.currency OR parent.number >= b.number, 'it differs from its parent in currency, or is older')
) AS found(wrong, what)
WHERE found.wrong

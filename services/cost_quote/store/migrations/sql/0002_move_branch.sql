-- One movement at every level of a branch that the caller has locked: figures, the soft limit's first time, an entry each.
CREATE FUNCTION move_branch(
  p_path text[], p_hold text, p_kind text, p_reason text, p_at timestamptz,
  p_held_cost numeric, p_held_attempts bigint, p_held_minutes bigint,
  p_spent_cost numeric, p_spent_attempts bigint, p_spent_minutes bigint
) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $function$
DECLARE
  mark text := CASE WHEN p_kind = 'hold' THEN 'hold:' ELSE 'settle:' END || p_hold;
  answer jsonb;
BEGIN
  WITH reckoned AS (
    SELECT b.id, b.soft_limit_at IS NULL AND s.reached AS told, s.reached
    FROM budget b CROSS JOIN LATERAL (
      SELECT
        b.soft_cost > 0 AND b.spent_cost + b.held_cost + p_held_cost + p_spent_cost >= b.soft_cost
        OR b.soft_attempts > 0
          AND b.spent_attempts + b.held_attempts + p_held_attempts + p_spent_attempts >= b.soft_attempts
        OR b.soft_review_minutes > 0
          AND b.spent_review_minutes + b.held_review_minutes + p_held_minutes + p_spent_minutes >= b.soft_review_minutes
        AS reached
    ) s
    WHERE b.id = ANY(p_path)
  ), moved AS (
    UPDATE budget SET
      held_cost = held_cost + p_held_cost, held_attempts = held_attempts + p_held_attempts,
      held_review_minutes = held_review_minutes + p_held_minutes,
      spent_cost = spent_cost + p_spent_cost, spent_attempts = spent_attempts + p_spent_attempts,
      spent_review_minutes = spent_review_minutes + p_spent_minutes,
      soft_limit_at = CASE WHEN r.told THEN p_at ELSE soft_limit_at END,
      soft_limit_by = CASE WHEN r.told THEN mark ELSE soft_limit_by END,
      revision = revision + 1
    FROM reckoned r WHERE budget.id = r.id
    RETURNING budget.id, budget.number, budget.revision, r.told, r.reached
  ), written AS (
    INSERT INTO entry (
      budget_id, sequence, kind, hold_id, held_cost, held_attempts, held_review_minutes, spent_cost, spent_attempts,
      spent_review_minutes, reason, request_id, created_at
    )
    SELECT id, revision, p_kind, p_hold, p_held_cost, p_held_attempts, p_held_minutes, p_spent_cost, p_spent_attempts,
      p_spent_minutes, p_reason, '', p_at
    FROM moved
  )
  SELECT jsonb_build_object(
    'outcome', 'moved',
    'told', coalesce(jsonb_agg(id ORDER BY number) FILTER (WHERE told), '[]'),
    'soft', coalesce(jsonb_agg(id ORDER BY number) FILTER (WHERE reached), '[]')
  ) INTO answer FROM moved;
  RETURN answer;
END
$function$

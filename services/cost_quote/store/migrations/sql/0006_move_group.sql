-- `services.cost_quote.domain.ledger` says what this must answer; tests/contract/cost_quote compares the two step by step.
-- A group of Holds, enlargements of them, settlements and releases, each decided as if alone. The budgets of all branches
-- are locked first, parents before children: who moves a Hold has locked its branch, so a Hold needs no lock of its own.
-- Where nothing limits a branch there is nothing to decide: new Holds and first settlements are moved together, each budget
-- written once (`move_unlimited`). What is asked of a tree in which one of them is another follows one by one, in the order
-- asked.
CREATE OR REPLACE FUNCTION move_group(p_asks jsonb) RETURNS TABLE (nth integer, answer jsonb) LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  q record; h hold; leaf budget; bad record; locked text[]; t timestamptz; known boolean; found_cost numeric;
  plain integer[]; moved integer;
BEGIN
  WITH branches AS (
    SELECT unnest(b.path) AS id FROM budget b WHERE b.id IN (
      SELECT x.budget FROM jsonb_to_recordset(p_asks) AS x(budget text)
      UNION SELECT held.budget_id FROM jsonb_to_recordset(p_asks) AS x(id text) JOIN hold held USING (id)
    )
  ), taken AS (
    SELECT b.id FROM budget b WHERE b.id IN (SELECT branches.id FROM branches) ORDER BY b.number FOR UPDATE
  )
  SELECT coalesce(array_agg(taken.id), '{}') INTO locked FROM taken;
  t := server_time();

  WITH judged AS (
    SELECT x.nth, b.path[1] AS tree, coalesce(
      (x.op = 'hold' AND known.id IS NULL OR x.op = 'settle' AND known.state = 'held')
      AND (x.currency = '' OR x.worth ? b.currency)
      AND b.id = ANY(locked)
      AND NOT EXISTS (
        SELECT FROM budget l WHERE l.id = ANY(b.path) AND (
          l.deadline_at IS NOT NULL
          OR greatest(l.hard_cost, l.hard_attempts, l.hard_review_minutes) > 0
          OR greatest(l.soft_cost, l.soft_attempts, l.soft_review_minutes) > 0
        )
      ), false) AS free
    FROM jsonb_to_recordset(p_asks) AS x(nth integer, op text, id text, budget text, currency text, worth jsonb)
    LEFT JOIN hold known ON known.id = x.id
    JOIN budget b ON b.id = coalesce(known.budget_id, x.budget)
  )
  SELECT array_agg(judged.nth) INTO plain FROM judged
  WHERE judged.tree NOT IN (SELECT other.tree FROM judged other WHERE NOT other.free);
  IF plain IS NOT NULL THEN
    RETURN QUERY SELECT * FROM move_unlimited(p_asks, plain, t);
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved <> cardinality(plain) THEN
      RAISE EXCEPTION 'an id was taken meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    IF moved = jsonb_array_length(p_asks) THEN
      RETURN;
    END IF;
  END IF;

  FOR q IN
    SELECT * FROM jsonb_to_recordset(p_asks) AS x(
      nth integer, op text, id text, budget text, cost numeric, currency text, attempts bigint, minutes bigint,
      worth jsonb, words text, correct boolean
    ) WHERE x.nth <> ALL(coalesce(plain, '{}')) ORDER BY x.nth
  LOOP
    nth := q.nth;
    SELECT * INTO h FROM hold WHERE hold.id = q.id;
    known := FOUND;
    SELECT * INTO leaf FROM budget WHERE budget.id = CASE WHEN known THEN h.budget_id ELSE q.budget END;
    IF leaf.id IS NOT NULL AND leaf.id <> ALL(locked) THEN
      -- It came to be while we waited for locks: all over again.
      RAISE EXCEPTION 'a branch was not locked' USING ERRCODE = 'serialization_failure';
    END IF;
    found_cost := CASE WHEN q.currency = '' THEN 0 ELSE (q.worth ->> leaf.currency)::numeric END;

    IF known AND (
      q.op = 'hold' OR h.budget_id = ''
      OR q.op = 'enlarge' AND h.state = 'held' AND found_cost <= h.cost
      OR h.state <> 'held' AND (
        q.op = 'release' OR NOT q.correct
        OR (h.settled_asked_cost, h.settled_asked_currency, h.settled_attempts, h.settled_review_minutes)
          IS NOT DISTINCT FROM (q.cost, q.currency, q.attempts, q.minutes)
      )
    ) THEN
      answer := jsonb_build_object('outcome', 'known', 'hold', to_jsonb(h), 'branch', (
        SELECT coalesce(jsonb_agg(to_jsonb(b) ORDER BY b.number), '[]') FROM budget b WHERE b.id = ANY(leaf.path)
      ));
      RETURN NEXT;
      CONTINUE;
    ELSIF q.op = 'release' AND NOT known THEN
      INSERT INTO hold (
        id, budget_id, currency, asked_cost, asked_currency, cost, attempts, review_minutes, state, subject, created_at, finished_at
      ) VALUES (q.id, '', '', 0, '', 0, 0, 0, 'released', '', t, t) ON CONFLICT DO NOTHING RETURNING * INTO h;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'the id was taken meanwhile' USING ERRCODE = 'serialization_failure';
      END IF;
      answer := jsonb_build_object('outcome', 'moved', 'told', '[]'::jsonb, 'soft', '[]'::jsonb, 'hold', to_jsonb(h));
      RETURN NEXT;
      CONTINUE;
    ELSIF q.op IN ('settle', 'enlarge') AND NOT known THEN
      answer := jsonb_build_object('outcome', 'unknown');
      RETURN NEXT;
      CONTINUE;
    ELSIF leaf.id IS NULL THEN
      answer := jsonb_build_object('outcome', 'no_budget');
      RETURN NEXT;
      CONTINUE;
    ELSIF found_cost IS NULL THEN
      answer := jsonb_build_object('outcome', 'no_rate', 'currency', leaf.currency);
      RETURN NEXT;
      CONTINUE;
    END IF;

    IF q.op = 'enlarge' THEN
      -- What it lacks, in money alone.
      q.attempts := 0;
      q.minutes := 0;
      found_cost := found_cost - h.cost;
    END IF;
    IF q.op IN ('hold', 'enlarge') THEN
      SELECT * INTO bad FROM (
        SELECT b.*, CASE
            WHEN b.deadline_at <= t THEN 'deadline'
            WHEN b.hard_cost > 0 AND b.spent_cost + b.held_cost + found_cost > b.hard_cost THEN 'cost'
            WHEN b.hard_attempts > 0 AND b.spent_attempts + b.held_attempts + q.attempts > b.hard_attempts THEN 'attempts'
            WHEN b.hard_review_minutes > 0
              AND b.spent_review_minutes + b.held_review_minutes + q.minutes > b.hard_review_minutes
              THEN 'review_minutes'
          END AS dimension
        FROM budget b WHERE b.id = ANY(leaf.path)
      ) AS levels WHERE dimension IS NOT NULL ORDER BY number LIMIT 1;
      IF FOUND THEN
        answer := jsonb_build_object(
          'outcome', 'refused', 'budget', to_jsonb(bad), 'dimension', bad.dimension, 'cost', found_cost, 'branch', (
            SELECT jsonb_agg(to_jsonb(b) ORDER BY b.number) FROM budget b WHERE b.id = ANY(leaf.path)
          )
        );
        UPDATE budget SET refused_at = t WHERE budget.id = bad.id;
        RETURN NEXT;
        CONTINUE;
      END IF;
      IF q.op = 'enlarge' THEN
        UPDATE hold SET cost = hold.cost + found_cost WHERE hold.id = q.id RETURNING * INTO h;
        answer := move_branch(leaf.path, q.id, 'hold', q.words, t, found_cost, 0, 0, 0, 0, 0);
        answer := answer || jsonb_build_object('hold', to_jsonb(h));
        RETURN NEXT;
        CONTINUE;
      END IF;
      INSERT INTO hold (
        id, budget_id, currency, asked_cost, asked_currency, cost, attempts, review_minutes, state, subject, created_at
      ) VALUES (q.id, q.budget, leaf.currency, q.cost, q.currency, found_cost, q.attempts, q.minutes, 'held', q.words, t)
      ON CONFLICT DO NOTHING RETURNING * INTO h;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'the id was taken meanwhile' USING ERRCODE = 'serialization_failure';
      END IF;
      answer := move_branch(leaf.path, q.id, 'hold', q.words, t, found_cost, q.attempts, q.minutes, 0, 0, 0);
    ELSIF q.op = 'settle' AND h.state = 'held' THEN
      answer := move_branch(
        leaf.path, q.id, 'settle', q.words, t, -h.cost, -h.attempts, -h.review_minutes, found_cost, q.attempts, q.minutes
      );
    ELSIF q.op = 'settle' THEN
      answer := move_branch(
        leaf.path, q.id, 'correction', q.words, t, 0, 0, 0, found_cost - coalesce(h.settled_cost, 0),
        q.attempts - coalesce(h.settled_attempts, 0), q.minutes - coalesce(h.settled_review_minutes, 0)
      );
    ELSE
      answer := move_branch(
        leaf.path, q.id, 'release', q.words, t, -h.cost, -h.attempts, -h.review_minutes, 0, 0, 0
      );
      UPDATE hold SET state = 'released', finished_at = t WHERE hold.id = q.id RETURNING * INTO h;
    END IF;
    IF q.op = 'settle' THEN
      UPDATE hold SET state = 'settled', settled_cost = found_cost, settled_attempts = q.attempts,
        settled_review_minutes = q.minutes, settled_asked_cost = q.cost, settled_asked_currency = q.currency,
        finished_at = coalesce(finished_at, t)
      WHERE hold.id = q.id RETURNING * INTO h;
    END IF;
    answer := answer || jsonb_build_object('hold', to_jsonb(h));
    RETURN NEXT;
  END LOOP;
END
$function$

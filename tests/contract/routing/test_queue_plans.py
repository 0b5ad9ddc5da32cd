"""How PostgreSQL goes about the statements of the durable queue when many Tasks wait."""

from collections.abc import Mapping

import pytest
from sqlalchemy import text

from services.routing.store import queue_statements as sql
from tests.contract.routing.tasks_stores import opened, queued

MANY = 20_000
WAITING = f"""
INSERT INTO tasks
SELECT made.* FROM (SELECT to_jsonb(t) AS pattern FROM tasks t) p, generate_series(1, {MANY}) n,
LATERAL jsonb_populate_record(NULL::tasks, pattern || jsonb_build_object(
  'id', 't' || n, 'tenant', 'tenant-' || n % 50, 'model', 'm' || n % 3, 'tag', n,
  'timer_at', CASE WHEN n % 2 = 0 THEN now() + interval '1 hour' END, 'parked_at', CASE WHEN n % 2 = 0 THEN now() END
)) made
"""
READY = "INSERT INTO ready SELECT id, tag FROM tasks WHERE timer_at IS NULL ON CONFLICT DO NOTHING"
ASKED: Mapping[str, tuple[str, str, str]] = {
    "claim_queued": (sql.CLAIM_QUEUED, "int, timestamptz, text, timestamptz, float8", "32, now(), 'w', now(), 5"),
    "claim_followed": (sql.CLAIM_FOLLOWED, "int, timestamptz, text, timestamptz", "32, now(), 'w', now()"),
    "claim_one": (sql.CLAIM_ONE, "text, timestamptz, text, timestamptz", "'t7', now(), 'w', now()"),
    "wake": (sql.WAKE, "int, timestamptz, timestamptz, int", "4, now(), now(), 64"),
    "wake_lines": (
        sql.WAKE_LINES,
        "int, timestamptz, timestamptz, int, text, text, smallint",
        "4, now(), now(), 32, '', '', '-1'",
    ),
    "wake_first": (
        sql.WAKE_FIRST,
        "text[], text[], smallint[], text[], int[], timestamptz, int",
        "'{m1}', '{tenant-1}', '{1}', '{}', '{1}', now(), 64",
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_no_statement_of_the_queue_reads_all_that_waits(pg_url: str, name: str):
    """PRF-5: with and without a plan of its own for the parameters, of which a LIMIT is one: all go by an index."""
    statement, types, values = ASKED[name]
    async with opened(pg_url) as store:
        await store.add(queued("pattern"))
        async with store._database.unit() as tx:
            for change in (WAITING, READY, "ANALYZE tasks", "ANALYZE ready"):
                await tx.execute(text(change))
            await tx.exec_driver_sql(f"PREPARE asked({types}) AS {statement}")
            for mode in ("force_custom_plan", "force_generic_plan"):
                await tx.exec_driver_sql(f"SET LOCAL plan_cache_mode = {mode}")
                plan = "\n".join((await tx.exec_driver_sql(f"EXPLAIN EXECUTE asked({values})")).scalars())
                assert "Seq Scan on tasks" not in plan, plan
                assert "Seq Scan on ready" not in plan, plan

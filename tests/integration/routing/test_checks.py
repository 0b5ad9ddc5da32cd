"""The running checks at work: a row that stands past every rule is an alert, and health's breaches are too."""

from pathlib import Path

from sqlalchemy import text

from libs.store.database import Database
from tests.integration.routing.stack import Stack, stack_over
from tests.support.waiting import eventually_async

ORPHAN = "UPDATE tasks SET state = 'queued', next_action_at = NULL WHERE id = 't0'"
UNFOLDED = "UPDATE supply_health SET revision = revision + 5 WHERE id = 'aurora-main/clip'"
KINDS = ("stuck_state", "invariant_violated")


async def subjects(stack: Stack) -> set[str]:
    """What is said to be stuck, or to violate an invariant."""
    return {alert.subject for kind in KINDS for alert in await stack.alerts(kind)}


async def run_sql(url: str, schema: str, statement: str) -> None:
    """One statement, past every rule of ours."""
    database = Database(url, schema=schema)
    async with database.unit() as tx:
        assert (await tx.execute(text(statement))).rowcount == 1
    await database.close()


async def test_what_no_rule_carries_on_is_told_by_the_running_product(pg_url: str, tmp_path: Path):
    """ATT-7, HLT-12, OPS-6: an orphan in the queue and a state without its history, planted in the database: within a
    check each is an alert, and a life without mishap beside them is none."""
    often = {"ROUTING_CHECK_INTERVAL_S": "0.2", "POINTSMAN_HEALTH_CHECK_S": "0.2"}
    async with stack_over(pg_url, tmp_path, **often) as stack:
        await stack.apply({"aurora": 1})
        await stack.submit("t0")
        await stack.ended("t0")
        assert await subjects(stack) == set()
        await stack.host.stop()  # nobody is to take the Task before it is an orphan
        await run_sql(pg_url, "routing", ORPHAN)
        await run_sql(pg_url, "health", UNFOLDED)
        await stack.restart()

        async def told() -> bool:
            return await subjects(stack) == {"t0", "aurora-main/clip"}

        await eventually_async(told)

"""Drills with real processes: a dispatcher that stands still, a database that falls over, a product without hints.

`make drills` plays these and the longer ones of `tests/drills`.
"""

from collections.abc import AsyncIterator

import pytest

from tests.e2e.competing import DRILL
from tests.e2e.drilling import QUICK, TwoDispatchers, burst, judged
from tests.e2e.scenery import setting
from tests.support.stack import AllInOne, Stack, running
from tests.support.visitor import until

PARTS = ("five", "eight", "three")
SLOTS = 16
MORE = 16 if DRILL else 4
"""Runs beyond the slots, in a burst that has to wait."""
UNKNOWN = "SELECT count(*) FROM routing.attempts WHERE state IN ('submitting', 'submission_uncertain')"
ACCEPTED = "SELECT id, state, provider_task_id, accepted_at, reconcile_count FROM routing.attempts ORDER BY id"
SUBMITTING = "SELECT worker, count(*) AS held FROM routing.tasks WHERE state = 'dispatching' GROUP BY worker"
DROPPED = r"has a newer owner|is lost; its step ends"


@pytest.fixture
async def stack() -> AsyncIterator[TwoDispatchers]:
    """A stack whose processes this test may harm."""
    async with running(TwoDispatchers, setting(submit_s=10.0, **QUICK)) as stack, stack.visit():
        assert isinstance(stack, TwoDispatchers)
        yield stack


async def test_who_stands_still_and_whose_database_falls_over(stack: TwoDispatchers) -> None:
    """VER-6, ATT-7, VER-7: both in turn, on one stack."""
    await a_dispatcher_stands_still(stack)
    await the_database_falls_over(stack)


async def a_dispatcher_stands_still(stack: TwoDispatchers) -> None:
    """SIGSTOP for longer than a lease with submissions under way: the other one takes over; back, it writes nothing."""
    for part in PARTS:
        await stack.lab.account(part, running=0)
        await stack.lab.script(part, {"slow_s": 3}, repeat="forever")
    runs = await burst(stack, "frozen", SLOTS)
    await until(stack.lab.ledger, lambda ledger: ledger["posts"]["count"] == SLOTS)
    held = await stack.rows(SUBMITTING)
    assert len(held) == 2, f"both dispatchers have submissions under way: {held}"
    async with stack.frozen("routing-1"):
        await stack.lab.call("DELETE", "/lab/script")
        await until(lambda: stack.rows(UNKNOWN), lambda found: found[0]["count"] == 0, 60)
        before = await stack.rows(ACCEPTED)

    async def dropped() -> int:
        return stack.told("routing-1", DROPPED)

    await until(dropped, lambda count: count >= min(item["held"] for item in held))
    assert await stack.rows(ACCEPTED) == before
    for part in PARTS:
        await stack.lab.account(part, running=60)
    await judged(stack, runs)


async def the_database_falls_over(stack: TwoDispatchers) -> None:
    """An immediate stop in the middle of a burst: nothing that it confirmed is lost, and everybody finds it again."""
    begun = len(await stack.lab.submissions())
    runs = await burst(stack, "fallen", SLOTS + MORE)
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= begun + SLOTS // 2)
    await stack.crash_database()
    await stack.recover_database()
    await judged(stack, runs)


@pytest.fixture
async def quiet() -> AsyncIterator[Stack]:
    """A stack in which nobody is woken."""
    async with running(AllInOne, setting(**QUICK, POINTSMAN_HINTS="off")) as stack, stack.visit():
        yield stack


async def test_nothing_hangs_on_a_hint(quiet: Stack) -> None:
    """VER-6, ATT-9: with every wake-up switched off the scans alone carry a burst, its waiting and a cancel."""
    runs = await burst(quiet, "unheard", SLOTS + MORE)
    await judged(quiet, runs)
    await quiet.lab.account("single", running=0)
    run_id = await quiet.api.post_run("single", "to be cancelled")
    await until(quiet.lab.submissions, lambda jobs: len(jobs) == SLOTS + MORE + 1)
    await quiet.api.call("POST", f"/v1/runs/{run_id}/cancel", body={})
    assert (await quiet.api.finished(run_id))["status"] == "cancelled"

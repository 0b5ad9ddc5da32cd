"""kill -9 of everything (product, database, providers) in the middle of a burst, twice, and what comes of it.

At the first kill the burst stands in every place in which a submission can stand: accepted and known; accepted while
its answer was still awaited; sent and not accepted; not sent yet. Leases are shortened, so that nobody waits for them.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.e2e.scenery import setting
from tests.support import books
from tests.support.stack import AllInOne, Stack, running
from tests.support.visitor import RESTING, gap_free, until

QUICK = {
    "ROUTING_WORKER_LEASE_S": "4.5",
    "ROUTING_HEARTBEAT_S": "1.5",
    "ROUTING_CAPACITY_TTL_S": "6",
    "ROUTING_RENEW_INTERVAL_S": "2",
    "POINTSMAN_RECONCILE_SETTLE_S": "2",
}
BURST = 24
SLOTS = 16
KNOWN, UNHEARD = 5, 3
HONEST = {"submission_unknown", "supply_unavailable", "submission_unresolved"}
SILENCE_S = 60


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    """A stack that this test may kill."""
    async with running(AllInOne, setting(submit_s=15.0, **QUICK)) as stack:
        yield stack


async def burst(stack: Stack, count: int, title: str) -> list[str]:
    """That many Runs at once."""
    return list(await asyncio.gather(*(stack.api.post_run("burst", f"{title} {number}") for number in range(count))))


async def accepted(stack: Stack) -> int:
    """How many jobs the providers have accepted."""
    return len(await stack.lab.submissions())


async def first_life(stack: Stack) -> list[str]:
    """A burst, killed with 5 jobs known, 3 accepted but not heard of, 8 on their way, 8 waiting."""
    async with stack.visit():
        for part in ("five", "eight", "three"):
            await stack.lab.account(part, running=0)
        await stack.lab.script("eight", {"slow_s": SILENCE_S}, repeat="forever")
        await stack.lab.script("three", {"hang_s": SILENCE_S, "accept": True}, repeat="forever")
        runs = await burst(stack, BURST, "first")
        await until(lambda: accepted(stack), lambda count: count == KNOWN + UNHEARD)
        await until(stack.lab.ledger, lambda ledger: ledger["posts"]["count"] == SLOTS)
        known = await until(lambda: books.attempts_of(stack), lambda found: sum(map(_known, found)) == KNOWN)
        assert len(known) == SLOTS
    await stack.kill()
    return runs


def _known(attempt: dict[str, object]) -> bool:
    return attempt["provider_task_id"] is not None


async def second_life(stack: Stack, before: int) -> list[str]:
    """More work on top of what is being recovered, killed when about half of everything was submitted."""
    await stack.start()
    async with stack.visit():
        runs = await burst(stack, BURST // 2, "second")
        await until(lambda: accepted(stack), lambda count: count >= (before + len(runs)) // 2, within_s=30)
    await stack.kill()
    return runs


async def test_kill_9_in_the_middle_of_a_burst_twice(stack: Stack) -> None:
    """ATT-5, ATT-7, VER-6, VER-7, EVENT-1: every Run ends honestly, nothing was submitted twice, none is lost."""
    runs = await first_life(stack)
    runs += await second_life(stack, len(runs))
    await stack.start()
    async with stack.visit():
        done = await stack.api.all_finished(runs, within_s=60)
        assert {run["id"] for run in await books.every_run(stack.api)} == set(runs)
        for run in done:
            assert run["status"] in RESTING
            assert (run["status"] == "succeeded") != (run["error"] is not None and run["error"]["code"] in HONEST), run
            gap_free(await stack.api.events_of(run["id"]))
        assert sum(run["status"] == "succeeded" for run in done) >= BURST
        attempts = await books.attempts_of(stack)
        assert len({attempt["client_token"] for attempt in attempts}) == len(attempts)
        lost = [attempt for attempt in attempts if attempt["state"] == "not_accepted"]
        assert len(lost) >= SLOTS - KNOWN - UNHEARD, "those that were on their way at the first kill"
        await books.agree(stack)

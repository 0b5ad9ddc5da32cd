"""SIGTERM while work is in flight, in both layouts: a clean end, and a next life that finishes everything."""

from tests.support import books
from tests.support.stack import Stack
from tests.support.visitor import gap_free, until

HELD = 5


async def test_sigterm_drains_and_the_next_life_finishes(started: Stack) -> None:
    """OPS-4, CAP-8: exit code 0 with a submission in hand and jobs out; each Run ends by its one Attempt."""
    async with started.visit() as stack:
        await stack.lab.account("steady", running=0)
        runs = [await stack.api.post_run("steady", f"held {number}") for number in range(HELD)]
        await until(lambda: stack.lab.submissions("steady"), lambda jobs: len(jobs) == HELD)
        await stack.lab.script("steady", {"slow_s": 1.5})
        runs.append(await stack.api.post_run("steady", "being submitted"))
        await until(lambda: stack.lab.ledger("steady"), lambda ledger: ledger["posts"]["count"] == HELD + 1)
    codes = await started.stop()
    assert set(codes.values()) == {0}, codes
    await started.start()
    async with started.visit() as stack:
        for run in await stack.api.all_finished(runs):
            assert (run["status"], run["usage"]["attempts"]) == ("succeeded", 1), run
            gap_free(await stack.api.events_of(run["id"]))
        await books.agree(stack)

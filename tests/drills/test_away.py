"""The database and the server of leases go away in the middle of a burst, and stay away for a while."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.e2e.drilling import QUICK, TwoDispatchers, burst, judged
from tests.e2e.scenery import setting
from tests.support.stack import running
from tests.support.valkey import ValkeyServer
from tests.support.visitor import until

AWAY_S = 15.0
"""Longer than a worker goes on trying to write down what it heard, and than its lease."""
BURST = 48
LEASES = {"POINTSMAN_CAPACITY_TTL_MAX_S": "20"}
"""A server without memory then learns for a minute, the length of its windows."""


@pytest.fixture
def leases() -> ValkeyServer:
    """A server of leases, not yet started."""
    return ValkeyServer()


@pytest.fixture(params=("postgres", "valkey"))
async def stack(request: pytest.FixtureRequest, leases: ValkeyServer) -> AsyncIterator[TwoDispatchers]:
    """A stack on either backend of capacity."""
    with leases:
        more = {**LEASES, "POINTSMAN_REDIS_URL": leases.url} if request.param == "valkey" else {}
        async with running(TwoDispatchers, setting(**QUICK, **more)) as stack, stack.visit():
            assert isinstance(stack, TwoDispatchers)
            yield stack


async def test_the_database_is_away(stack: TwoDispatchers) -> None:
    """VER-6, SYN-7, ATT-5, VER-7: an immediate stop and a long absence: what was confirmed is there, what was under way
    is looked up, nothing is sent twice."""
    coming = asyncio.ensure_future(burst(stack, "away", BURST))
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= BURST // 8, 60)
    await stack.crash_database()
    await asyncio.sleep(AWAY_S)  # the time is the drill
    await stack.recover_database()
    await judged(stack, await coming)


@pytest.mark.parametrize("stack", ["postgres"], indirect=True)
async def test_the_disk_stalls(stack: TwoDispatchers) -> None:
    """VER-6, SYN-7, ATT-5, VER-7: every process of the database stands still, longer than a statement is waited for, as
    it does over a disk that does not answer; what nobody knows the outcome of is found by its state."""
    coming = asyncio.ensure_future(burst(stack, "stalled", BURST))
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= BURST // 8, 60)
    async with stack.stalled_database():
        await asyncio.sleep(AWAY_S)  # the time is the drill
    await judged(stack, await coming)


@pytest.mark.parametrize("stack", ["valkey"], indirect=True)
async def test_the_leases_are_lost(stack: TwoDispatchers, leases: ValkeyServer) -> None:
    """VER-6, CAP-9, VER-7: kill -9 of the server of leases, and an empty one in its place: it learns from those who
    renew, admits nobody meanwhile, and the burst is served to its end."""
    for part in ("five", "eight", "three"):
        await stack.lab.account(part, running=0)
    runs = await burst(stack, "forgotten", BURST)
    await until(stack.lab.submissions, lambda jobs: len(jobs) == 16)
    leases.kill()
    leases.start()
    await until(stack.api.slots, lambda slots: sum(slots.values()) == 16, 30)
    assert len(await stack.lab.submissions()) == 16
    for part in ("five", "eight", "three"):
        await stack.lab.account(part, running=60)
    await judged(stack, runs)

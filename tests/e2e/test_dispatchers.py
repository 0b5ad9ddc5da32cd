"""Eight dispatchers compete for the same Tasks and the same few slots, in processes of their own on one database."""

from collections.abc import AsyncIterator

import pytest

from tests.e2e import competing
from tests.e2e.scenery import setting
from tests.e2e.test_replicas import BACKENDS, SETTINGS
from tests.support.replicas import EightDispatchers
from tests.support.stack import running
from tests.support.valkey import ValkeyServer
from tests.support.visitor import until

CROWD = 300 if competing.DRILL else 20
KILLED = ("routing-2", "routing-5", "routing-7")


@pytest.fixture(params=BACKENDS)
async def stack(request: pytest.FixtureRequest) -> AsyncIterator[EightDispatchers]:
    """A stack whose processes this test may kill."""
    with ValkeyServer() as leases:
        more = {"POINTSMAN_REDIS_URL": leases.url} if request.param == "valkey" else {}
        async with running(EightDispatchers, setting(submit_s=10.0, **SETTINGS, **more)) as stack, stack.visit():
            assert isinstance(stack, EightDispatchers)
            yield stack


async def test_eight_dispatchers_compete(stack: EightDispatchers) -> None:
    """CAP-1, ATT-7, SEL-25, VER-7: eight processes, three of them killed at work: no slot too many, no job twice."""
    runs = await competing.crowd([stack.api], "before", CROWD // 2)
    await until(stack.lab.submissions, lambda jobs: len(jobs) >= CROWD // 4, 60)
    stack.kill_members(*KILLED)
    runs += await competing.crowd([stack.api], "after", CROWD - len(runs))
    await competing.judged(stack, runs, within_s=180 if competing.DRILL else 90)

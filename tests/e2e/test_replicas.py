"""Two of every context over one database: a crowd comes through both edges, and one of each is killed in the middle."""

from collections.abc import AsyncIterator

import pytest

from libs.host.placement import START_ORDER
from tests.e2e import competing
from tests.e2e.scenery import setting
from tests.support.replicas import TwoOfEach
from tests.support.stack import running
from tests.support.valkey import ValkeyServer
from tests.support.visitor import until

SETTINGS = {
    "ROUTING_WORKER_LEASE_S": "6",
    "ROUTING_HEARTBEAT_S": "2",
    "ROUTING_CAPACITY_TTL_S": "15",
    "ROUTING_RENEW_INTERVAL_S": "4",
    "ROUTING_POOL_SIZE": "4",
    "POINTSMAN_RECONCILE_SETTLE_S": "2",
}
CROWD = 200 if competing.DRILL else 20
BACKENDS = ("postgres", "valkey") if competing.DRILL else ("postgres",)


@pytest.fixture(params=BACKENDS)
async def stack(request: pytest.FixtureRequest) -> AsyncIterator[TwoOfEach]:
    """A stack whose processes this test may kill."""
    with ValkeyServer() as leases:
        more = {"POINTSMAN_REDIS_URL": leases.url} if request.param == "valkey" else {}
        async with running(TwoOfEach, setting(submit_s=10.0, **SETTINGS, **more)) as stack, stack.visit():
            assert isinstance(stack, TwoOfEach)
            yield stack


async def test_one_of_each_is_killed_in_the_middle(stack: TwoOfEach) -> None:
    """OPS-2, CAP-1, ATT-7, VER-6, VER-7: two of each, then one of each: no slot too many, nothing sent twice."""
    first = stack.api
    async with stack.as_holder(stack.key, stack.other_url) as second:
        runs = await competing.crowd([first, second], "before", CROWD // 2)
        await until(stack.lab.submissions, lambda jobs: len(jobs) >= CROWD // 4, 60)
        stack.kill_members(*(f"{name}-2" for name in START_ORDER))
        runs += await competing.crowd([second, first], "after", CROWD - len(runs))
        await competing.judged(stack, runs, within_s=180 if competing.DRILL else 90)

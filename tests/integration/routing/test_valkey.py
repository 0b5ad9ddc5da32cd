"""Tasks while the server of leases is away, and when it comes back empty: real Valkey, database and studio."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from libs.host.hosted import Context
from libs.kernel.world import World
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.capacity.v1 import capacity_service_pb2
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from pointsman.routing.v1 import task_pb2
from services.__main__ import BUILDERS
from services.capacity.compose import SCHEMA, VERSIONS, assemble
from services.capacity.settings import Settings
from services.capacity.store.postgres import PostgresCapacityStore
from services.capacity.store.valkey import ValkeyCapacityStore, connect
from tests.integration.routing.stack import CALL_S, Stack, stack_over
from tests.support.valkey import ValkeyServer
from tests.support.waiting import eventually_async

SUCCEEDED = task_pb2.TASK_STATE_SUCCEEDED
SUPPLY = "aurora-main/clip"
TTL_S = 40
STEP_S = 15
"""How far the server's time is moved at once: running work must be able to renew in between."""
SHIFTED_LUA = """(function()
  local t = redis.call('TIME'); t[1] = t[1] + tonumber(redis.call('GET', 'shift') or '0'); return t
end)()"""


def on_shifted_time(env: Mapping[str, str], _channels: Any, world: World) -> Context:
    """Capacity as it is composed, but its server of leases reads a clock that the test puts forward."""
    settings = Settings.from_env(env)
    durable = PostgresCapacityStore(Database(settings.database_url, schema=SCHEMA))
    longest = timedelta(seconds=settings.ttl_max_s)
    store = ValkeyCapacityStore(connect(settings.redis_url, 2.0), durable, longest, time_lua=SHIFTED_LUA)

    async def migration() -> None:
        await migrate(settings.database_url, schema=SCHEMA, versions=VERSIONS)

    return assemble(store, settings, world, migration)


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server that the test may kill."""
    with ValkeyServer() as made:
        yield made


@pytest.fixture
async def stack(pg_url: str, tmp_path: Path, server: ValkeyServer) -> AsyncIterator[Stack]:
    """Everything running on that server; slots are renewed every second."""
    settings = {
        "POINTSMAN_REDIS_URL": server.url,
        "POINTSMAN_CAPACITY_TTL_MAX_S": str(TTL_S),
        "ROUTING_CAPACITY_TTL_S": str(TTL_S),
        "ROUTING_RENEW_INTERVAL_S": "0.5",
    }
    builders = {**BUILDERS, "capacity": on_shifted_time}
    async with stack_over(pg_url, tmp_path, builders, **settings) as made:
        yield made


async def put_forward(stack: Stack, server: ValkeyServer, seconds: int) -> None:
    """Move the server's time, and wait until the running job's slot was renewed under the new one."""
    client = connect(server.url, 2.0)
    await client.incrby("shift", seconds)
    now = (await client.time())[0] + int(await client.get("shift"))
    await client.aclose()

    async def renewed() -> bool:
        return any(lease.expire_time.seconds >= now + TTL_S - 5 for lease in await leases(stack))

    await eventually_async(renewed)


async def leases(stack: Stack) -> list[Any]:
    """Live leases."""
    stub = CapacityServiceStub(stack.host.channels.to("capacity"))
    asked = capacity_service_pb2.GetCapacityRequest(include_leases=True)
    return list((await stub.GetCapacity(asked, timeout=CALL_S)).leases)


async def waits(stack: Stack, task_id: str, *beginnings: str) -> None:
    """Return when the Task's reason begins so."""

    async def told() -> bool:
        return (await stack.task(task_id)).waiting_reason.startswith(beginnings)

    await eventually_async(told)


async def test_a_server_of_leases_that_returns_empty_stops_nothing_but_new_work(
    stack: Stack, server: ValkeyServer
) -> None:
    """CAP-9, CAP-12, ATT-10: away, nobody is admitted; back without a memory, nobody for one TTL.

    Running work keeps its slot and ends; after that the dispatch goes on, and the slot that was learned is counted.
    """
    await stack.apply({"aurora": 2})
    await stack.lab("POST", "/accounts/aurora", {"render_s": 3600.0})
    await stack.submit("before")

    async def sent(count: int) -> bool:
        return len(await stack.submissions()) == count

    await eventually_async(lambda: sent(1))
    server.kill()
    await stack.submit("behind")
    await waits(stack, "behind", "governance: governance_backend_down")
    server.start()
    await waits(stack, "behind", "capacity: channel aurora-main learning until ")
    for _ in range(3):  # 45 of 60 seconds: it must not forget for less than its windows last
        await put_forward(stack, server, STEP_S)
    assert await sent(1)
    assert (await stack.capacity())[SUPPLY].in_use == 1
    await put_forward(stack, server, STEP_S)
    await eventually_async(lambda: sent(2))
    await stack.submit("last")
    await waits(stack, "last", f"capacity: supply {SUPPLY} concurrency 2 of 2")
    await stack.lab("POST", "/accounts/aurora", {"render_s": 0.2})
    assert {task.state for task in await stack.ended("before", "behind", "last")} == {SUCCEEDED}
    assert await sent(3)

"""The whole context behind its real wire: over memory, over PostgreSQL, over Valkey.

The servers' time is taken from a table and from a key here: every backend stands on a clock that the test moves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.store.database import Database
from libs.store.migrations import migrate
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from services.capacity.compose import VERSIONS, assemble
from services.capacity.domain.leases import Request
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.ports import CapacityStore
from services.capacity.settings import Settings
from services.capacity.store.memory import MemoryCapacityStore
from services.capacity.store.postgres import PostgresCapacityStore
from services.capacity.store.valkey import EPOCH, ValkeyCapacityStore, connect
from services.capacity.store.verdicts import MICROSECOND
from tests.support.worlds import START, SteeredClock, steered_world

TIMEOUT_S = 10.0
LONGEST_TTL = timedelta(hours=24)
TEST_TIME_LUA = "redis.call('HMGET', 'test_time', 's', 'us')"
EMPTY = (
    "TRUNCATE level, lease",
    "UPDATE catalog SET revision = 0",
    "CREATE TABLE IF NOT EXISTS test_time (now timestamptz)",
    "TRUNCATE test_time",
    "CREATE OR REPLACE FUNCTION server_time() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT now FROM test_time'",
)


async def emptied(url: str) -> str:
    """The URL, migrated and without rows."""
    await migrate(url, schema="capacity", versions=VERSIONS)
    database = Database(url, schema="capacity")
    async with database.unit() as tx:
        for statement in EMPTY:
            await tx.execute(text(statement))
        await tx.execute(text("INSERT INTO test_time VALUES (:now)"), {"now": START})
    await database.close()
    return url


@dataclass
class Bench:
    """A store and the clock that it stands on."""

    store: CapacityStore
    clock: SteeredClock
    advance: Callable[[float], Coroutine[Any, Any, None]]


async def bench(url: str) -> Bench:
    """A store on a steered clock."""
    clock = SteeredClock()
    if url == "memory:":

        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        return Bench(MemoryCapacityStore(clock), clock, advance)
    if url.startswith("unix:"):
        return await valkey_bench(url, clock)
    database = Database(url, schema="capacity")

    async def advance_both(seconds: float) -> None:
        async with database.unit() as tx:
            await tx.execute(text("UPDATE test_time SET now = :now"), {"now": clock.advance(seconds)})

    return Bench(PostgresCapacityStore(database), clock, advance_both)


async def valkey_bench(url: str, clock: SteeredClock) -> Bench:
    """Leases in Valkey, declarations in memory."""
    client = connect(url, 5.0)

    async def set_time() -> None:
        seconds, rest = divmod((clock.now() - EPOCH) // MICROSECOND, 1_000_000)
        await client.hset("test_time", mapping={"s": seconds, "us": rest})

    async def advance(seconds: float) -> None:
        clock.advance(seconds)
        await set_time()

    await set_time()
    store = ValkeyCapacityStore(client, MemoryCapacityStore(clock), LONGEST_TTL, time_lua=TEST_TIME_LUA)
    return Bench(store, clock, advance)


@pytest.fixture(params=["memory", "postgres", "valkey"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A store without rows."""
    if request.param == "memory":
        return "memory:"
    if request.param == "valkey":
        return str(request.getfixturevalue("valkey_url"))
    return asyncio.run(emptied(request.getfixturevalue("pg_module_url")))


@pytest.fixture
async def ground(database_url: str) -> AsyncIterator[Bench]:
    """The port alone, with its clock."""
    made = await bench(database_url)
    yield made
    await made.store.close()


VIDEO = Subject(Kind.GLOBAL, "video")
CHANNEL = Subject(Kind.CHANNEL, "a")
SUPPLY = Subject(Kind.SUPPLY, "a/x")
OTHER = Subject(Kind.SUPPLY, "a/y")


def levels(**figures: dict[str, Any]) -> list[Level]:
    """Levels "a", "a/x", "a/y" and, where figures are given for it, the whole kind; 0 = no gate."""
    made = [
        Level(CHANNEL, **figures.get("channel", {})),
        Level(SUPPLY, "a", **figures.get("supply", {})),
        Level(OTHER, "a", **figures.get("other", {})),
    ]
    if "kind" in figures:
        made.append(Level(VIDEO, **figures["kind"]))
    return made


UNLIMITED = HealthLimit(1, 1, None)


def request(lease_id: str, **changes: Any) -> Request:
    """A reservation on "a" and "a/x" with healthy views, changed where said."""
    values: dict[str, Any] = {
        "lease_id": lease_id, "holder": "h", "kind": "video", "channel_id": "a", "supply_id": "a/x",
        "channel_health": UNLIMITED, "supply_health": UNLIMITED, "tokens": 0, "ttl": timedelta(seconds=30),
    }  # fmt: skip
    return Request(**(values | changes))


@pytest.fixture
async def stub(ground: Bench) -> AsyncIterator[Any]:
    """A client over the in-process channel; the tickers rest."""
    world, _ = steered_world()
    world = type(world)(ground.clock, world.ids, world.rng)
    context = assemble(ground.store, Settings("memory:"), world)
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add in context.registrations:
        server.add(add)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        yield CapacityServiceStub(channels.to("capacity"))
    await server.close()

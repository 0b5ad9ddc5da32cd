"""What becomes of leases when their server loses its memory, and what the rest of the world sees meanwhile."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.capacity.v1.capacity_service_pb2 import GetCapacityRequest
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from services.capacity.compose import build
from services.capacity.domain.leases import Lease
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.settings import Settings
from services.capacity.store.memory import MemoryCapacityStore
from services.capacity.store.valkey import EPOCH, ValkeyCapacityStore, connect
from services.capacity.store.verdicts import MICROSECOND
from tests.contract.capacity.conftest import CHANNEL, SUPPLY, TEST_TIME_LUA, levels, request
from tests.support.valkey import ValkeyServer
from tests.support.worlds import SteeredClock, steered_world

TTL = timedelta(seconds=90)


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server that the test may kill."""
    with ValkeyServer() as made:
        yield made


class Town:
    """Several processes' stores on one server and one clock; what is declared outlives the server."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.clock = SteeredClock()
        self.declared = MemoryCapacityStore(self.clock)
        self.stores = [self.store(), self.store()]

    def store(self) -> ValkeyCapacityStore:
        """One more process."""
        return ValkeyCapacityStore(connect(self.server.url, 2.0), self.declared, TTL, time_lua=TEST_TIME_LUA)

    async def advance(self, seconds: float = 0) -> None:
        """Tell the server's time."""
        self.clock.advance(seconds)
        client = connect(self.server.url, 2.0)
        seconds, rest = divmod((self.clock.now() - EPOCH) // MICROSECOND, 1_000_000)
        await client.hset("test_time", mapping={"s": int(seconds), "us": rest})
        await client.aclose()


@pytest.fixture
async def town(server: ValkeyServer) -> AsyncIterator[Town]:
    """Two processes, a Channel of three slots."""
    made = Town(server)
    await made.advance()
    await made.stores[0].apply_levels(1, levels(channel={"concurrency": 3}))
    yield made
    for store in made.stores:
        await store.close()


async def taken(store: ValkeyCapacityStore, lease_id: str) -> Lease:
    """A lease that must be given."""
    outcome = await store.reserve(request(lease_id))
    assert isinstance(outcome, Lease), outcome
    return outcome


async def test_a_server_without_memory_only_renews_for_one_ttl(town: Town) -> None:
    """CAP-9: after a loss of memory nothing new is admitted for one longest time to live, and holders renew.

    What was renewed is learned with its slots, so that afterwards nothing is admitted beside it that has no room; what
    nobody renewed has lapsed by then.
    """
    one, two = town.stores
    await taken(one, "1")
    await taken(two, "2")
    await taken(two, "3")
    town.server.kill()
    town.server.start()
    await town.advance(10)
    learning = town.clock.now() + TTL
    assert await one.reserve(request("4")) == Refusal(CHANNEL, Gate.LEARNING, 0, 0, learning)
    assert (await one.renew("h", ("1",), TTL)).renewed == ("1",)
    assert (await two.renew("h", ("2", "nobody"), TTL)).renewed == ("2",)
    await town.advance(60)
    await one.renew("h", ("1",), TTL)
    await town.advance(29.999999)
    assert isinstance(await two.reserve(request("4")), Refusal)
    await town.advance(0.000001)
    await taken(two, "4")
    await taken(two, "5")
    assert await two.reserve(request("6")) == Refusal(CHANNEL, Gate.CONCURRENCY, 3, 3)
    assert [lease.id for lease in await one.leases()] == ["1", "4", "5"]
    assert await one.release("1", "h", None)
    await taken(one, "6")


async def test_a_lease_that_had_lapsed_is_not_learned(town: Town) -> None:
    """CAP-2, CAP-9: a loss of memory raises no dead lease, and an unknown one is lost outside of learning."""
    one, _ = town.stores
    lease = await taken(one, "1")
    town.server.kill()
    town.server.start()
    await town.advance(30)
    assert (await one.renew("h", ("1",), TTL)).lost == ("1",)
    await town.advance(90)
    late = structs.replace(lease, id="2", expires_at=lease.expires_at + timedelta(hours=1))
    assert (await one.renew("h", ("2",), TTL, [late])).lost == ("2",)


async def test_another_process_teaches_by_what_the_holder_remembers(town: Town) -> None:
    """CAP-9: the process that gave a lease may be gone; the holder's own word, sent with the renewal, is enough."""
    one, two = town.stores
    lease = await taken(one, "1")
    town.server.kill()
    town.server.start()
    await town.advance(1)
    assert (await two.renew("other", ("1",), TTL, [lease])).lost == ("1",)
    assert (await two.renew("h", ("1",), TTL, [lease])).renewed == ("1",)
    figures = {figure.level.subject: figure.usage for figure in await two.figures()}
    assert (figures[CHANNEL].in_use, figures[SUPPLY].in_use, figures[SUPPLY].requests) == (1, 1, 1)


async def test_what_other_processes_released_is_not_remembered_for_ever(town: Town) -> None:
    """CAP-9: a process forgets what it was given once that has lapsed by its own book, whoever ended it."""
    one, two = town.stores
    for number in range(20):
        await taken(one, str(number))
        assert await two.release(str(number), "h", None)
    assert len(one._given) == 20
    await town.advance(TTL.total_seconds())
    await taken(one, "last")
    await one.sweep()
    assert list(one._given) == ["last"]


async def test_a_server_that_is_away_admits_nobody(town: Town) -> None:
    """CAP-12: no answer is `governance_backend_down`, retry after 5 s, for every call; nothing is admitted."""
    one, _ = town.stores
    await taken(one, "1")
    town.server.kill()
    for call in (one.reserve(request("2")), one.release("1", "h", None), one.renew("h", ("1",), TTL), one.figures()):
        with pytest.raises(Fault) as raised:
            await call
        assert (raised.value.code, raised.value.retry_after_ms) == ("governance_backend_down", 5000)


async def test_a_ttl_that_learning_could_not_outwait_is_refused(town: Town) -> None:
    """CAP-3, CAP-9: no lease may live longer than a server without memory waits."""
    with pytest.raises(Fault, match="validation_failed"):
        await town.stores[0].reserve(request("1", ttl=TTL + timedelta(seconds=1)))
    with pytest.raises(Fault, match="validation_failed"):
        await town.stores[0].renew("h", ("1",), TTL + timedelta(seconds=1))


async def test_the_setting_selects_the_server(server: ValkeyServer) -> None:
    """OPS-2, CAP-5: POINTSMAN_REDIS_URL moves leases to that server; everything else stays in the database."""
    settings = Settings.from_env({"POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_REDIS_URL": server.url})
    world, _ = steered_world()
    context = build(settings, None, world)
    registry = LoopbackRegistry()
    rpc = RpcServer(registry=registry)
    for _, add in context.registrations:
        rpc.add(add)
    await rpc.start()
    async with Channels(registry=registry, caller="routing") as channels:
        await CapacityServiceStub(channels.to("capacity")).GetCapacity(GetCapacityRequest(), timeout=5)
    await rpc.close()
    await context.stop()
    client = connect(server.url, 2.0)
    assert await client.keys("{pointsman:capacity:1}:*") == [b"{pointsman:capacity:1}:boot"]
    await client.aclose()

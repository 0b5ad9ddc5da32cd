"""Several servers behind one address: calls are spread, and whoever is gone or does not serve is passed over."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.address import Address, parse, parse_peer
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from tests.support.generated_echo import pb2, pb2_grpc
from tests.support.hop import servicer
from tests.support.waiting import eventually_async

NAMES = ("first", "second")
CALLS = 20


class Replicas:
    """Two servers, each of which answers with its name, and one stub to both."""

    def __init__(self, listen: Callable[[str], str]) -> None:
        self._listen = listen
        self.servers: dict[str, RpcServer] = {}
        self._bound: dict[str, Address] = {}
        self.channels: Channels
        self.stub: Any

    async def start(self) -> None:
        """Both servers, then the stub."""
        for name in NAMES:
            await self.serve(name)
        text = ",".join(str(self._bound[name]) for name in NAMES)
        self.channels = Channels({"echo": parse_peer(text)}, registry=LoopbackRegistry())
        self.stub = pb2_grpc.EchoServiceStub(self.channels.to("echo"))

    async def serve(self, name: str) -> None:
        """A server of that name, on the address of its predecessor if it had one."""

        async def unary(request: Any, context: Any) -> Any:
            return pb2.EchoResponse(text=name)

        address = self._bound.get(name) or parse(self._listen(name))
        server = self.servers[name] = RpcServer([address], registry=LoopbackRegistry())
        server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(unary=unary), s))
        await server.start()
        self._bound[name] = server.bound[address]

    async def answered(self) -> Counter[str]:
        """Who answered how many of some calls."""
        return Counter([await self._ask() for _ in range(CALLS)])

    async def _ask(self) -> str:
        try:
            async with faults_from_rpc():
                return str((await self.stub.Unary(pb2.EchoRequest(), timeout=10)).text)
        except Fault as fault:
            return fault.code

    async def close(self) -> None:
        """Everything."""
        await self.channels.close()
        for server in self.servers.values():
            await server.close(grace_s=0.2)


@pytest.fixture(params=["unix", "tcp"])
async def replicas(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Replicas]:
    """Two replicas on Unix sockets or on TCP."""
    folder = tmp_path
    listen = (lambda name: f"unix:{folder}/{name}") if request.param == "unix" else (lambda name: "127.0.0.1:0")
    pair = Replicas(listen)
    await pair.start()
    yield pair
    await pair.close()


async def test_calls_are_spread_over_replicas(replicas: Replicas) -> None:
    """OPS-2: with two replicas each gets its share of the calls of one caller."""

    async def shared() -> bool:
        return set(await replicas.answered()) == set(NAMES)

    await eventually_async(shared)  # the first calls may come before the second connection is up
    assert await replicas.answered() == {"first": CALLS // 2, "second": CALLS // 2}


async def test_a_replica_that_has_gone_is_passed_over_until_it_is_back(replicas: Replicas) -> None:
    """OPS-2: while one replica is away the other serves every call, without one that fails; back, it has its share."""
    await replicas.servers["first"].close(grace_s=0.2)

    async def answers(expected: set[str]) -> bool:
        return set(await replicas.answered()) == expected

    await eventually_async(lambda: answers({"second"}))
    await replicas.serve("first")
    await eventually_async(lambda: answers(set(NAMES)), within_s=20)


async def test_a_replica_that_does_not_serve_is_passed_over(replicas: Replicas) -> None:
    """OPS-4: one that says NOT_SERVING (it starts, or drains) gets no new calls while another serves."""
    await replicas.servers["first"].set_serving(False)

    async def answers(expected: set[str]) -> bool:
        return set(await replicas.answered()) == expected

    await eventually_async(lambda: answers({"second"}))
    drain = asyncio.create_task(replicas.servers["second"].drain(grace_s=5, lag_s=0))
    await replicas.servers["first"].set_serving()
    await eventually_async(lambda: answers({"first"}))
    await drain

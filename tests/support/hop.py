"""One hop for tests: a server with an echo servicer on a transport, and the stub that reaches it."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from libs.rpc.address import LOOPBACK, Address, Transport, parse
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from tests.support.generated_echo import pb2, pb2_grpc

TRANSPORTS = ("loopback", "unix", "tcp")
Behaviour = Callable[..., Any]


async def echo(request: Any, context: Any) -> Any:
    """The text, the number and the ballast given back."""
    return pb2.EchoResponse(text=request.text, number=request.number, payload=request.payload)


async def count_up(request: Any, context: Any) -> AsyncIterator[Any]:
    """`number` messages, numbered from 0."""
    for number in range(int(request.number)):
        yield pb2.EchoResponse(number=number)


async def join(requests: AsyncIterator[Any], context: Any) -> Any:
    """The texts joined, and how many there were."""
    texts = [request.text async for request in requests]
    return pb2.EchoResponse(text=" ".join(texts), number=len(texts))


async def echo_each(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
    """Every message answered by its echo."""
    async for request in requests:
        yield pb2.EchoResponse(text=request.text)


def servicer(
    unary: Behaviour = echo,
    server_stream: Behaviour = count_up,
    client_stream: Behaviour = join,
    bidi: Behaviour = echo_each,
) -> Any:
    """An echo servicer whose methods are these functions. `Missing` is left as generated."""
    methods = {"Unary": unary, "ServerStream": server_stream, "ClientStream": client_stream, "Bidi": bidi}
    kind = type("EchoServicer", (pb2_grpc.EchoServiceServicer,), {k: staticmethod(v) for k, v in methods.items()})
    return kind()


KINDS = ("unary", "server_stream", "client_stream", "bidi")


@dataclass
class Hop:
    """A running server, the doors to it, and the stub."""

    server: RpcServer
    channels: Channels
    address: Address
    metrics: Metrics
    stub: Any = field(init=False)

    def __post_init__(self) -> None:
        self.stub = pb2_grpc.EchoServiceStub(self.channels.to("echo"))

    async def call(self, kind: str, request: Any, timeout: float = 60) -> list[Any]:
        """One call of that kind with one request; every answer."""
        if kind == "unary":
            return [await self.stub.Unary(request, timeout=timeout)]
        if kind == "client_stream":
            return [await self.stub.ClientStream(iter([request]), timeout=timeout)]
        if kind == "server_stream":
            return [answer async for answer in self.stub.ServerStream(request, timeout=timeout)]
        return [answer async for answer in self.stub.Bidi(iter([request]), timeout=timeout)]

    def stub_as(self, caller: str) -> Any:
        """The stub as that context uses it."""
        return pb2_grpc.EchoServiceStub(self.channels.for_caller(caller).to("echo"))


class Hops:
    """Starts hops on one transport and closes them all."""

    def __init__(self, transport: str) -> None:
        self.transport = Transport(transport)
        self._folder = Path(tempfile.mkdtemp(prefix="hop-"))
        self._open: list[Hop] = []

    def address(self) -> Address:
        """A fresh address to listen on."""
        if self.transport is Transport.UNIX:
            return parse(f"unix:{self._folder}/{len(self._open)}.sock")
        return LOOPBACK if self.transport is Transport.LOOPBACK else parse("127.0.0.1:0")

    async def open(
        self, caller: str = "", message_limit_bytes: int = 1024 * 1024, answer_limit_bytes: int = 0, **given: Any
    ) -> Hop:
        """Start a server; behaviours go to the servicer, everything else to `RpcServer`."""
        behaviours = {name: given.pop(name) for name in KINDS if name in given}
        limits = {
            "message_limit_bytes": message_limit_bytes,
            "answer_limit_bytes": answer_limit_bytes or message_limit_bytes,
        }
        registry, metrics, address = LoopbackRegistry(), Metrics(), self.address()
        server = RpcServer([address], registry=registry, metrics=metrics, **limits, **given)
        server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(**behaviours), s))
        await server.start()
        bound = server.bound[address]
        channels = Channels({"echo": bound}, registry=registry, caller=caller, **limits)
        hop = Hop(server, channels, bound, metrics)
        self._open.append(hop)
        return hop

    async def close(self) -> None:
        """Close every hop."""
        for hop in self._open:
            await hop.channels.close()
            await hop.server.close(grace_s=0.2, finish_s=5.0)
        shutil.rmtree(self._folder)

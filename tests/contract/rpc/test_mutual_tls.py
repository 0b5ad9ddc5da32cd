"""Between contexts over TCP: a certificate or nothing, and each context calls what the table allows it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from cli.issuing import Authority
from libs.faults.fault import Fault
from libs.rpc.address import LOOPBACK, Address, parse
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.identity import current_identity
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.rpc.tls import Certificates, RenewingChannel, Tls
from libs.telemetry.metrics import Metrics
from tests.support.generated_echo import SERVICE, pb2, pb2_grpc
from tests.support.hop import servicer
from tests.support.waiting import eventually

TABLE = {f"/{SERVICE}/Unary": frozenset({"runs"}), f"/{SERVICE}/ServerStream": frozenset({"runs", "edge"})}
REQUEST = pb2.EchoRequest(text="hello", number=2)


@dataclass
class Town:
    """A server that is `routing`, and certificates for whoever knocks."""

    folder: Path
    callers: list[str] = field(default_factory=list)
    streams: int = 0

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder / "ours")

    def certificates(self, *contexts: str, authority: Authority | None = None) -> Certificates:
        """A new certificate for these contexts, by our authority or by another; ours is trusted in any case."""
        signed = (authority or self.authority).issue("+".join(contexts), contexts, 1)
        return Certificates(
            signed.read_bytes(), signed.with_suffix(".key").read_bytes(), self.authority.path.read_bytes()
        )

    def tls(self, *contexts: str) -> Tls:
        """The same as a context holds it."""
        return Tls(self.certificates(*contexts))


@dataclass
class Street:
    """The server with its doors, and what opens channels to it."""

    town: Town
    server: RpcServer
    tls: Tls
    tcp: Address
    registry: LoopbackRegistry
    stack: AsyncExitStack

    def stub(self, tls: Tls | None, caller: str = "", address: Address | None = None, to: str = "routing") -> Any:
        """What calls the server as the holder of these certificates, saying that it is `caller`."""
        channels = Channels({to: address or self.tcp}, registry=self.registry, caller=caller, tls=tls)
        self.stack.push_async_callback(channels.close, 0.0)
        return pb2_grpc.EchoServiceStub(channels.to(to))


@pytest.fixture
async def street(tmp_path: Path) -> AsyncIterator[Street]:
    """Routing's server on TCP by mutual TLS, and in this process."""
    town, asked = Town(tmp_path), parse("127.0.0.1:0")

    async def unary(request: Any, context: Any) -> Any:
        town.callers.append(current_identity().caller)
        return pb2.EchoResponse(text=request.text)

    tls, registry = town.tls("routing"), LoopbackRegistry()
    server = RpcServer((LOOPBACK, asked), registry=registry, metrics=Metrics(), tls=tls, callers=TABLE)
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(unary=unary), s))
    await server.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close, 0.1)
        yield Street(town, server, tls, server.bound[asked], registry, stack)


async def ask(stub: Any) -> str:
    """The code of the fault that a unary call ends with, "" for none."""
    try:
        async with faults_from_rpc():
            await stub.Unary(REQUEST, timeout=5)
    except Fault as fault:
        return fault.code
    return ""


async def test_a_context_with_its_certificate_is_served(street: Street) -> None:
    """AUTH-3: both sides prove who they are; the servicer is told the context that was proved."""
    stub = street.stub(street.town.tls("runs"), "runs")
    assert await ask(stub) == ""
    assert [answer.number async for answer in stub.ServerStream(REQUEST, timeout=5)] == [0, 1]
    assert street.town.callers == ["runs"]


async def test_no_connection_without_our_authority(street: Street, tmp_path: Path) -> None:
    """AUTH-3: no certificate, one of another authority, and no TLS at all are never served."""
    foreign = Authority(tmp_path / "theirs")
    assert await ask(street.stub(None, "runs")) == "peer_unavailable"
    signed_elsewhere = Tls(street.town.certificates("runs", authority=foreign))
    assert await ask(street.stub(signed_elsewhere, "runs")) == "peer_unavailable"
    nothing = grpc.ssl_channel_credentials(street.town.authority.path.read_bytes())
    options = [("grpc.ssl_target_name_override", street.tls.server_name("routing"))]
    async with aio.secure_channel(street.tcp.target, nothing, options) as channel:
        assert await ask(pb2_grpc.EchoServiceStub(channel)) == "peer_unavailable"
    assert street.town.callers == []


async def test_the_server_must_be_the_context_that_is_called(street: Street) -> None:
    """AUTH-3: whoever holds a certificate of another context cannot pose as this one."""
    assert await ask(street.stub(street.town.tls("runs"), "runs", to="cost_quote")) == "peer_unavailable"


async def test_each_context_calls_what_the_table_allows(street: Street) -> None:
    """AUTH-3: a right certificate of a context that may not call the method is PERMISSION_DENIED, `forbidden`."""
    stub = street.stub(street.town.tls("edge"), "edge")
    with pytest.raises(aio.AioRpcError) as refused:
        await stub.Unary(REQUEST, timeout=5)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    with pytest.raises(Fault, match="edge may not call") as caught:
        async with faults_from_rpc():
            await stub.Unary(REQUEST, timeout=5)
    assert caught.value.code == "forbidden"
    assert len([answer async for answer in stub.ServerStream(REQUEST, timeout=5)]) == 2
    nobodys = street.stub(street.town.tls("runs"), "runs")
    with pytest.raises(Fault, match="runs may not call"):
        async with faults_from_rpc():
            await nobodys.Missing(REQUEST, timeout=5)


@pytest.mark.parametrize(
    ("contexts", "said", "code"),
    [
        (("edge",), "runs", "forbidden"),
        (("edge",), "", "forbidden"),
        (("edge", "runs"), "runs", ""),
        (("edge", "runs"), "edge", "forbidden"),
        (("runs",), "", ""),
        (("runs",), "somebody", ""),
        (("somebody",), "", "forbidden"),
        (("somebody",), "runs", "forbidden"),
    ],
)
async def test_a_name_is_what_the_certificate_proves(
    street: Street, contexts: Sequence[str], said: str, code: str
) -> None:
    """AUTH-3: saying another name than one's certificate has opens nothing, nor does saying none."""
    assert await ask(street.stub(street.town.tls(*contexts), said)) == code


async def test_in_one_process_the_table_holds_without_certificates(street: Street) -> None:
    """AUTH-3: the same table holds in-process, by the name that a context says."""
    assert await ask(street.stub(None, "runs", LOOPBACK)) == ""
    assert await ask(street.stub(None, "edge", LOOPBACK)) == "forbidden"
    assert await ask(street.stub(None, "", LOOPBACK)) == ""


async def test_new_certificates_hold_without_a_restart(street: Street, tmp_path: Path) -> None:
    """AUTH-3: server and client change to another authority while they run; a stream under way is not cut off."""
    client = street.town.tls("runs")
    stub = street.stub(client, "runs")
    stream = stub.ServerStream(pb2.EchoRequest(number=3), timeout=30)
    first = await stream.read()
    street.town.authority = Authority(tmp_path / "next")
    street.tls.renew(street.town.certificates("routing"))
    assert await ask(street.stub(client, "runs")) == "peer_unavailable"
    client.renew(street.town.certificates("runs"))
    assert await ask(stub) == ""
    assert [first.number, (await stream.read()).number, (await stream.read()).number] == [0, 1, 2]
    assert await ask(street.stub(street.town.tls("runs"), "runs")) == ""


async def test_a_retired_connection_is_closed(tmp_path: Path) -> None:
    """AUTH-3: what certificates before have opened is closed once no call can be under way on it."""
    town, closed = Town(tmp_path), []

    class Inner(aio.Channel):
        """Tells of its end."""

        async def close(self, grace: float | None = None) -> None:
            closed.append(self)

        def __getattr__(self, name: str) -> Callable[..., Any]:
            raise AttributeError(name)

    Inner.__abstractmethods__ = frozenset()
    opened: list[Any] = []
    tls = town.tls("runs")
    channel = RenewingChannel(tls, lambda: opened.append(Inner()) or opened[-1], retired_s=0.0)
    tls.renew(town.certificates("runs"))
    assert channel.current() is opened[1]
    await eventually(lambda: closed == [opened[0]])
    await channel.close()
    assert closed == opened


async def test_strangers_have_a_door_of_their_own(tmp_path: Path) -> None:
    """AUTH-3: at one server strangers come in plainly with a key, and contexts, by certificates, without one."""
    town, inner, outer = Town(tmp_path), parse("127.0.0.1:0"), parse("localhost:0")

    async def admit(call: Any) -> None:
        identity = current_identity()
        if identity.authorization is None or identity.authorization.reveal() != "Bearer good":
            raise Fault.of("unauthenticated", "no key was given")

    server = RpcServer(
        (inner, outer), public=(outer,), admit=admit, callers=TABLE, tls=town.tls("routing"), metrics=Metrics()
    )
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(), s))
    await server.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close, 0.1)
        street = Street(town, server, town.tls("routing"), server.bound[inner], LoopbackRegistry(), stack)
        assert await ask(street.stub(town.tls("runs"), "runs")) == ""
        assert await ask(street.stub(None, "runs", server.bound[outer])) == "unauthenticated"
        key = [("authorization", "Bearer good")]
        answer = await street.stub(None, "edge", server.bound[outer]).Unary(REQUEST, timeout=5, metadata=key)
        assert answer.text == "hello"

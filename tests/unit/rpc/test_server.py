"""What a server takes in, and what it refuses before it starts."""

import asyncio

import grpc
import pytest
from grpc import aio

from libs.faults.fault import Fault
from libs.faults.wire import from_rpc_error
from libs.rpc.address import LOOPBACK
from libs.rpc.channels import Channels
from libs.rpc.identity import current_identity
from libs.rpc.loopback import LoopbackChannel, LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from tests.support.generated_echo import SERVICE, pb2, pb2_grpc
from tests.support.hop import servicer


def server_in(registry: LoopbackRegistry, **given) -> RpcServer:
    """A server that shares nothing with other tests."""
    return RpcServer(registry=registry, metrics=Metrics(), **given)


def add(server: RpcServer, **behaviours) -> tuple[str, ...]:
    """Host an echo servicer."""
    return server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(**behaviours), s))


def test_generated_code_registers_by_name():
    """The semi-private call that generated code makes is what every transport is fed from."""
    server = server_in(LoopbackRegistry())
    assert add(server) == (SERVICE,)
    assert server.services == (SERVICE,)


def test_a_servicer_method_that_is_not_async_is_refused():
    """A blocking method would hold every call of the process; it is named when it is registered."""

    def blocking(request, context):
        return pb2.EchoResponse()

    with pytest.raises(TypeError, match="EchoService/Unary must be a coroutine function"):
        add(server_in(LoopbackRegistry()), unary=blocking)

    async def returns_nothing_to_iterate(request, context):
        return pb2.EchoResponse()

    with pytest.raises(TypeError, match="EchoService/ServerStream must be an async generator"):
        add(server_in(LoopbackRegistry()), server_stream=returns_nothing_to_iterate)


def test_something_that_registers_nothing_is_refused():
    """A forgotten servicer is noticed at once."""
    with pytest.raises(ValueError, match="registers no service"):
        server_in(LoopbackRegistry()).add(lambda server: None)


async def test_a_service_has_one_home_in_a_process():
    """Two servers of one process cannot serve the same service in-process, nor one server twice."""
    registry = LoopbackRegistry()
    first, second = server_in(registry), server_in(registry)
    add(first)
    with pytest.raises(ValueError, match="hosted twice"):
        add(first)
    add(second)
    await first.start()
    with pytest.raises(ValueError, match="already served"):
        await second.start()
    with pytest.raises(RuntimeError, match="before the server starts"):
        add(first)
    await first.close(0.1)
    assert registry.services() == []


async def test_admission_may_wait_and_refuse():
    """AUTH-1: a check of the caller's key runs behind the interceptors and ends the call with its fault."""
    registry = LoopbackRegistry()

    async def admit(call):
        await asyncio.sleep(0)
        key = current_identity().authorization
        if key is None or key.reveal() != "Bearer right":
            raise Fault.of("unauthenticated")

    server = server_in(registry, public=(LOOPBACK,), admit=admit)
    add(server)
    await server.start()
    channels = Channels(registry=registry)
    stub = pb2_grpc.EchoServiceStub(channels.to("echo"))
    with pytest.raises(aio.AioRpcError) as failed:
        await stub.Unary(pb2.EchoRequest(), timeout=5)
    assert from_rpc_error(failed.value).code == "unauthenticated"
    assert await stub.Unary(pb2.EchoRequest(text="in"), timeout=5, metadata=(("authorization", "Bearer right"),))
    await channels.close()
    await server.close(0.1)


async def test_a_closed_channel_takes_no_calls_and_cancels_what_is_in_flight():
    """A loopback channel closes as gRPC's does."""
    registry = LoopbackRegistry()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server = server_in(registry)
    add(server, unary=unary)
    await server.start()
    channel = LoopbackChannel(registry)
    assert channel.get_state() is grpc.ChannelConnectivity.READY
    stub = pb2_grpc.EchoServiceStub(channel)
    call = stub.Unary(pb2.EchoRequest(), timeout=60)
    await begun.wait()
    changed = asyncio.create_task(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
    await channel.close()
    await changed
    await ended.wait()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN
    with pytest.raises(aio.UsageError):
        stub.Unary(pb2.EchoRequest(), timeout=60)
    await server.close(0.1)


async def test_closing_with_grace_lets_calls_end():
    """A channel that closes with grace waits for its calls."""
    registry = LoopbackRegistry()
    release, begun = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        await release.wait()
        return pb2.EchoResponse(text="done")

    server = server_in(registry)
    add(server, unary=unary)
    await server.start()
    channel = LoopbackChannel(registry)
    call = pb2_grpc.EchoServiceStub(channel).Unary(pb2.EchoRequest(), timeout=60)
    await begun.wait()
    closing = asyncio.create_task(channel.close(60))
    await asyncio.sleep(0)
    release.set()
    await closing
    assert (await call).text == "done"
    await server.close(0.1)


async def test_nothing_is_left_behind(caplog: pytest.LogCaptureFixture):
    """However calls end, neither channel nor server keeps anything of them, and no task dies unheard."""
    registry = LoopbackRegistry()

    async def unary(request, context):
        if request.act == "fault":
            raise Fault.of("not_found")
        if request.act == "own":
            raise asyncio.CancelledError
        if request.act == "late":
            await asyncio.Event().wait()
        return pb2.EchoResponse(text=request.text)

    async def server_stream(request, context):
        while True:
            yield pb2.EchoResponse()

    server = server_in(registry)
    add(server, unary=unary, server_stream=server_stream)
    await server.start()
    channel = LoopbackChannel(registry)
    stub = pb2_grpc.EchoServiceStub(channel)

    async def ask(number: int) -> None:
        act = ("echo", "fault", "own", "late", "cancelled", "never awaited", "stream left")[number % 7]
        timeout = 0.01 if act == "late" else 60
        request = pb2.EchoRequest(act="late" if act in ("cancelled", "never awaited") else act)
        if act == "stream left":
            async for _ in stub.ServerStream(request, timeout=timeout):
                break
            return
        call = stub.Unary(request, timeout=timeout)
        if act == "cancelled":
            asyncio.get_running_loop().call_soon(call.cancel)
        if act != "never awaited":
            await call

    outcomes = await asyncio.gather(*(ask(number) for number in range(700)), return_exceptions=True)
    assert sum(isinstance(outcome, BaseException) for outcome in outcomes) == 400
    assert await server.running.wait_idle(20)
    assert channel._active == set()
    assert server._exchanges == set()
    assert [record for record in caplog.records if record.name == "asyncio"] == []
    await channel.close()
    await server.close(0.1)

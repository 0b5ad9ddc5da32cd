"""The habits of grpcio that libs/rpc guards against, shown on a bare server.

When one of these tests fails, grpcio has changed: read the guard that it names and decide whether it is still needed.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio

from tests.support.generated_echo import pb2, pb2_grpc
from tests.support.hop import servicer


class Bare:
    """A server without anything of ours, and its stub."""

    def __init__(self, **options: Any) -> None:
        self.server = aio.server(**options)
        self._channels: list[aio.Channel] = []

    async def stub(self, interceptors: Any = None, **behaviours: Any) -> Any:
        """Serve these behaviours and reach them."""
        pb2_grpc.add_EchoServiceServicer_to_server(servicer(**behaviours), self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        await self.server.start()
        channel = aio.insecure_channel(f"127.0.0.1:{port}", interceptors=interceptors)
        self._channels.append(channel)
        return pb2_grpc.EchoServiceStub(channel)

    async def close(self) -> None:
        """Close both sides."""
        for channel in self._channels:
            await channel.close()
        await self.server.stop(None)


@pytest.fixture
async def bare() -> AsyncIterator[Bare]:
    """A bare server."""
    made = Bare()
    yield made
    await made.close()


async def test_an_unhandled_exception_sends_its_text_to_the_client(bare: Bare):
    """Guarded by libs/rpc/interceptors/faults.py."""

    async def unary(request, context):
        raise RuntimeError("the password is tortoise")

    stub = await bare.stub(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await stub.Unary(pb2.EchoRequest(), timeout=20)
    assert "tortoise" in (failed.value.details() or "")


async def test_an_own_cancellation_leaves_the_client_waiting(bare: Bare):
    """Guarded by libs/rpc/interceptors/faults.py: only the client's deadline ends the call."""

    async def unary(request, context):
        raise asyncio.CancelledError

    stub = await bare.stub(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await stub.Unary(pb2.EchoRequest(), timeout=0.3)
    assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_stop_returns_before_a_finally_has_run(bare: Bare):
    """Guarded by libs/rpc/running.py: our own register of handlers."""
    begun, release, released = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            released.set()

    stub = await bare.stub(unary=unary)
    call = stub.Unary(pb2.EchoRequest(), timeout=60)
    await begun.wait()
    async with asyncio.timeout(20):
        await bare.server.stop(0.05)
    assert not released.is_set()
    release.set()
    async with asyncio.timeout(20):
        await released.wait()
    call.cancel()


async def test_a_deadline_does_not_propagate_by_itself(bare: Bare):
    """Guarded by libs/rpc/interceptors/deadline.py and libs/rpc/outgoing.py."""

    async def unary(request, context):
        if request.text == "far":
            return pb2.EchoResponse(number=context.time_remaining())
        return await stub.Unary(pb2.EchoRequest(text="far"), timeout=3600)

    stub = await bare.stub(unary=unary)
    answer = await stub.Unary(pb2.EchoRequest(), timeout=20)
    assert answer.number > 3000


async def test_resource_exhausted_has_several_meanings():
    """Guarded by libs/faults/wire.py: too many calls and too large a message share one status and carry no reason."""
    begun, release = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        await release.wait()
        return pb2.EchoResponse()

    bare = Bare(maximum_concurrent_rpcs=1, options=[("grpc.max_receive_message_length", 1000)])
    stub = await bare.stub(unary=unary)
    first = stub.Unary(pb2.EchoRequest(), timeout=60)
    await begun.wait()
    for request in (pb2.EchoRequest(), pb2.EchoRequest(payload=b"x" * 2000)):
        with pytest.raises(aio.AioRpcError) as failed:
            await stub.Unary(request, timeout=20)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "grpc-status-details-bin" not in dict(failed.value.trailing_metadata() or ())
    release.set()
    await first
    await bare.close()


class Swallows(aio.UnaryUnaryClientInterceptor):
    """What a careless `except BaseException` around the continuation does."""

    async def intercept_unary_unary(self, continuation, client_call_details, request):
        """Answer something when the call is cancelled."""
        call = await continuation(client_call_details, request)
        try:
            return await call
        except BaseException:
            return pb2.EchoResponse(text="swallowed")


async def test_a_client_interceptor_can_swallow_cancellation(bare: Bare):
    """Guarded by libs/rpc/outgoing.py, which is no interceptor of gRPC's."""
    begun = asyncio.Event()

    async def unary(request, context):
        begun.set()
        await asyncio.Event().wait()

    stub = await bare.stub(interceptors=[Swallows()], unary=unary)

    async def ask():
        return await stub.Unary(pb2.EchoRequest(), timeout=60)

    task = asyncio.create_task(ask())
    await begun.wait()
    task.cancel()
    assert (await task).text == "swallowed"
    assert not task.cancelled()

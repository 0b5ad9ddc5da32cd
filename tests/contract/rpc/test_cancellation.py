"""Cancellation: by the client, by nobody, and by the handler itself."""

import asyncio

import grpc
import pytest
from grpc import aio

from libs.faults.wire import from_rpc_error
from libs.rpc.faulting import faults_from_rpc
from tests.support.generated_echo import pb2
from tests.support.hop import Hops


class Watched:
    """Behaviours that tell when they begin and end, and that never end by themselves."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def unary(self, request, context):
        """Wait for ever."""
        try:
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def server_stream(self, request, context):
        """Send without end."""
        try:
            self.begun.set()
            number = 0
            while True:
                yield pb2.EchoResponse(number=number)
                number += 1
                await asyncio.sleep(0)
        finally:
            self.ended.set()

    async def has_ended(self) -> bool:
        """True as soon as the handler's `finally` has run."""
        async with asyncio.timeout(20):
            await self.ended.wait()
        return True


async def test_a_cancelled_task_cancels_the_handler(hops: Hops):
    """OPS-4: the caller's task is cancelled, its await raises CancelledError, the handler is stopped.

    Guards against client interceptors that swallow cancellation: the outgoing side is none of gRPC's.
    """
    watched = Watched()
    hop = await hops.open(unary=watched.unary)

    async def ask():
        async with faults_from_rpc():
            return await hop.stub.Unary(pb2.EchoRequest(), timeout=60)

    task = asyncio.create_task(ask())
    await watched.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert await watched.has_ended()


async def test_cancel_on_the_call_cancels_the_handler(hops: Hops):
    """OPS-4: `call.cancel()` is the other way to give up."""
    watched = Watched()
    hop = await hops.open(unary=watched.unary)
    call = hop.stub.Unary(pb2.EchoRequest(), timeout=60)
    await watched.begun.wait()
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()
    assert await call.code() is grpc.StatusCode.CANCELLED
    assert not call.cancel()
    assert await watched.has_ended()


async def test_a_cancelled_reader_of_a_stream_cancels_the_handler(hops: Hops):
    """SYN-8: an abandoned client cancels upstream."""
    watched = Watched()
    hop = await hops.open(server_stream=watched.server_stream)

    async def read():
        async for _ in hop.stub.ServerStream(pb2.EchoRequest(), timeout=60):
            await asyncio.sleep(0)

    task = asyncio.create_task(read())
    await watched.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await watched.has_ended()


async def test_an_abandoned_stream_ends_its_handler(hops: Hops):
    """SYN-8: a loop that is left and forgotten stops the handler at once.

    Guards against gRPC for Python, whose call holds itself in a cycle once it has been iterated over.
    """
    watched = Watched()
    hop = await hops.open(server_stream=watched.server_stream)
    async for message in hop.stub.ServerStream(pb2.EchoRequest(), timeout=60):
        if message.number == 2:
            break
    assert await watched.has_ended()


async def test_an_own_cancellation_is_told_to_the_client(hops: Hops):
    """ERR-2: a handler's own CancelledError becomes ABORTED with a reason.

    Guards against gRPC for Python, which sends nothing: a client without a deadline would wait for ever.
    """

    async def unary(request, context):
        inner = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=60)
    assert failed.value.code() is grpc.StatusCode.ABORTED
    assert from_rpc_error(failed.value).code == "cancelled"


async def test_a_handler_that_cancels_its_own_task_is_told_to_the_client(hops: Hops):
    """ERR-2: also when the cancellation looks as if it came from outside."""

    async def unary(request, context):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=60)
    assert from_rpc_error(failed.value).code == "cancelled"


async def test_an_own_cancellation_in_a_stream_is_told_to_the_client(hops: Hops):
    """ERR-2: the same for a stream, after the messages it has sent."""

    async def server_stream(request, context):
        yield pb2.EchoResponse(number=1)
        raise asyncio.CancelledError

    hop = await hops.open(server_stream=server_stream)
    call = hop.stub.ServerStream(pb2.EchoRequest(), timeout=60)
    assert (await call.read()).number == 1
    with pytest.raises(aio.AioRpcError) as failed:
        await call.read()
    assert from_rpc_error(failed.value).code == "cancelled"


async def test_a_handler_that_ignores_cancellation_does_not_hold_its_client(hops: Hops):
    """OPS-4: the client's deadline is the client's; a handler that cleans up slowly costs it nothing."""
    release, ended = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            ended.set()

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=0.2)
    assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert not ended.is_set()
    release.set()
    async with asyncio.timeout(20):
        await ended.wait()


async def test_done_callbacks_run_on_both_sides(hops: Hops):
    """The end of a call is told to those who asked, on either side."""
    served, called = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        context.add_done_callback(lambda _: served.set())
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary)
    call = hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    call.add_done_callback(lambda _: called.set())
    await call
    async with asyncio.timeout(20):
        await served.wait()
        await called.wait()

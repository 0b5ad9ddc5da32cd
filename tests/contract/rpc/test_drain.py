"""Drain: what was begun is finished, what cannot be finished is told, and nothing is left running."""

import asyncio

import pytest

from libs.faults.fault import Fault
from libs.rpc.address import Transport
from libs.rpc.faulting import faults_from_rpc
from tests.support.generated_echo import pb2
from tests.support.hop import Hops


async def ask(hop):
    """A unary call as a peer makes it."""
    async with faults_from_rpc():
        return await hop.stub.Unary(pb2.EchoRequest(), timeout=60)


async def test_a_handler_at_work_is_finished(hops: Hops):
    """OPS-4: drain waits for handlers, and their clients get their answers."""
    release, begun = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        await release.wait()
        return pb2.EchoResponse(text="finished")

    hop = await hops.open(unary=unary)
    call = asyncio.create_task(ask(hop))
    await begun.wait()
    closing = asyncio.create_task(hop.server.close(grace_s=60))
    await asyncio.sleep(0)
    assert not closing.done()
    release.set()
    assert (await call).text == "finished"
    assert await closing


async def test_drain_waits_for_the_last_finally(hops: Hops):
    """OPS-4: a handler that is cancelled after the grace period still releases what it holds before close returns.

    Guards against gRPC for Python, whose `server.stop` can return while a `finally` block is running.
    """
    begun = asyncio.Event()
    steps = []

    async def unary(request, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for step in range(20):  # many turns of the loop: a lease is released, a connection given back
                await asyncio.sleep(0.005)
                steps.append(step)

    hop = await hops.open(unary=unary)
    call = asyncio.create_task(ask(hop))
    await begun.wait()
    assert await hop.server.close(grace_s=0.05, finish_s=20)
    assert steps == list(range(20))
    assert len(hop.server.running) == 0
    with pytest.raises(Fault) as failed:
        await call
    assert failed.value.code == "peer_unavailable"


async def test_a_call_that_was_given_up_by_its_client_is_waited_for_too(hops: Hops):
    """OPS-4: also a handler whose client has left is in our register until its `finally` has run."""
    begun, release = asyncio.Event(), asyncio.Event()
    released = []

    async def unary(request, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            released.append("lease")

    hop = await hops.open(unary=unary)
    call = asyncio.create_task(ask(hop))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    closing = asyncio.create_task(hop.server.close(grace_s=60))
    asyncio.get_running_loop().call_later(0.1, release.set)
    assert await closing
    assert released == ["lease"]


async def test_an_endless_stream_does_not_hold_the_drain(hops: Hops):
    """OPS-4: streams have a short grace of their own; their readers are told UNAVAILABLE and resume elsewhere."""

    async def server_stream(request, context):
        yield pb2.EchoResponse(number=1)
        await asyncio.Event().wait()

    hop = await hops.open(server_stream=server_stream)
    call = hop.stub.ServerStream(pb2.EchoRequest(), timeout=60)
    assert (await call.read()).number == 1
    assert await hop.server.close(grace_s=60, stream_grace_s=0.05)
    with pytest.raises(Fault) as failed:
        async with faults_from_rpc():
            await call.read()
    assert failed.value.code == "peer_unavailable"


async def test_drain_leaves_calls_of_this_process_alone(hops: Hops):
    """OPS-4: while contexts stop one after the other, those that are left still serve each other in-process.

    Over a socket the same call is refused: there drain means that nobody new is served.
    """
    hop = await hops.open()
    assert await hop.server.drain(grace_s=20)
    if hops.transport is Transport.LOOPBACK:
        await ask(hop)
        await hop.server.close(grace_s=20)
    with pytest.raises(Fault) as failed:
        await ask(hop)
    assert failed.value.code == "peer_unavailable"


async def test_closing_twice_is_one_close(hops: Hops):
    """A second signal to stop finds nothing left to do."""
    hop = await hops.open()
    assert await hop.server.close(grace_s=0.1)
    assert await hop.server.close(grace_s=0.1)


async def test_a_handler_that_never_ends_is_named(hops: Hops, caplog: pytest.LogCaptureFixture):
    """OPS-4: close is bounded; a handler that refuses to end is named in the log instead of holding the process."""
    begun, release = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary)
    call = asyncio.create_task(ask(hop))
    await begun.wait()
    assert not await hop.server.close(grace_s=0.05, finish_s=0.05)
    assert any(getattr(record, "methods", None) for record in caplog.records)
    release.set()
    with pytest.raises(Fault):
        await call
    assert await hop.server.running.wait_idle(20)

"""Deadlines: mandatory, passed on, and enforced."""

import asyncio

import grpc
import pytest
from grpc import aio

from libs.faults.fault import Fault
from libs.faults.wire import from_rpc_error
from libs.kernel.deadlines import carry_deadline, current_deadline, deadline_at
from libs.rpc.faulting import faults_from_rpc
from tests.support.generated_echo import pb2
from tests.support.hop import Hops


async def tell_remaining(request, context):
    """The seconds that remain for this call, and for the task."""
    deadline = current_deadline()
    assert deadline is not None
    own = deadline - asyncio.get_running_loop().time()
    return pb2.EchoResponse(number=context.time_remaining(), text=str(own))


async def test_a_call_without_a_deadline_is_refused(hops: Hops):
    """OPS-4: every call has a deadline; one without is refused by name and its handler never runs."""
    ran = []

    async def unary(request, context):
        ran.append(request)
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary, caller="routing", assumed_deadline_s=30)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest())
    fault = from_rpc_error(failed.value)
    assert (failed.value.code(), fault.code) == (grpc.StatusCode.INVALID_ARGUMENT, "deadline_required")
    assert "EchoService/Unary" in fault.message
    assert ran == []


async def test_a_stream_without_a_deadline_is_refused(hops: Hops):
    """OPS-4: the rule holds for streams too."""
    hop = await hops.open()
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.ServerStream(pb2.EchoRequest(number=1)).read()
    assert from_rpc_error(failed.value).code == "deadline_required"


async def test_a_stranger_s_call_gets_the_assumed_deadline(hops: Hops):
    """OPS-4: where the door allows it, a caller that is no context of ours works under a deadline."""

    async def unary(request, context):
        deadline = current_deadline()
        assert deadline is not None
        return pb2.EchoResponse(number=deadline - asyncio.get_running_loop().time())

    hop = await hops.open(unary=unary, assumed_deadline_s=30)
    answer = await hop.stub.Unary(pb2.EchoRequest())
    assert 0 < answer.number < 31


async def test_the_handler_knows_its_deadline(hops: Hops):
    """OPS-4: the deadline of the call is the deadline of the task that serves it."""
    hop = await hops.open(unary=tell_remaining)
    answer = await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert 0 < answer.number < 21  # gRPC writes timeouts rounded up
    assert abs(float(answer.text) - answer.number) < 5


async def test_a_deadline_is_passed_on_through_two_hops(hops: Hops):
    """OPS-4: deadlines do not propagate by themselves in gRPC for Python; here no hop asks for more than its caller.

    gRPC writes timeouts rounded up, by one per cent at most; no hop comes near the hour that was asked for.
    """
    far = await hops.open(unary=tell_remaining)

    async def ask(request, context):
        answer = await far.stub.Unary(request, timeout=3600)
        return pb2.EchoResponse(number=answer.number, seen={"near": str(context.time_remaining())})

    middle = await hops.open(unary=ask)

    async def ask_twice(request, context):
        return await middle.stub.Unary(request, timeout=3600)

    near = await hops.open(unary=ask_twice)
    answer = await near.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert 0 < answer.number < 21
    assert 0 < float(answer.seen["near"]) < 21


async def test_a_call_takes_the_caller_s_deadline_when_it_names_none(hops: Hops):
    """OPS-4: inside a call, an outgoing call without its own timeout still has what remains."""
    hop = await hops.open(unary=tell_remaining)
    with deadline_at(asyncio.get_running_loop().time() + 10):
        answer = await hop.stub.Unary(pb2.EchoRequest())
    assert 0 < answer.number < 10


async def test_a_deadline_that_has_passed_fails_before_sending(hops: Hops):
    """OPS-4: nobody works for a caller that waits no more."""
    ran = []

    async def unary(request, context):
        ran.append(request)
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary)
    with deadline_at(asyncio.get_running_loop().time() - 1), pytest.raises(Fault) as failed:
        async with faults_from_rpc():
            await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert failed.value.code == "deadline_exceeded"
    assert ran == []


@pytest.mark.parametrize("kind", ["unary", "server_stream"])
async def test_expiry_ends_the_call_and_cancels_the_handler(hops: Hops, kind: str):
    """OPS-4: at the deadline the client is answered and the handler is stopped."""
    stopped = asyncio.Event()

    async def unary(request, context):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def server_stream(request, context):
        try:
            yield pb2.EchoResponse()
            await asyncio.Event().wait()
        finally:
            stopped.set()

    hop = await hops.open(unary=unary, server_stream=server_stream)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.call(kind, pb2.EchoRequest(), timeout=0.2)
    assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert from_rpc_error(failed.value).code == "deadline_exceeded"
    async with asyncio.timeout(20):
        await stopped.wait()


async def test_work_that_outlives_its_caller_is_freed_of_the_deadline(hops: Hops):
    """CAP-8: a task that settles after the call must not inherit a deadline that has passed."""
    settled: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
    tasks = set()

    async def settle():
        carry_deadline(None)
        settled.set_result(current_deadline())

    async def unary(request, context):
        tasks.add(asyncio.create_task(settle()))
        return pb2.EchoResponse(number=current_deadline() or 0)

    hop = await hops.open(unary=unary)
    assert (await hop.stub.Unary(pb2.EchoRequest(), timeout=20)).number > 0
    assert await settled is None

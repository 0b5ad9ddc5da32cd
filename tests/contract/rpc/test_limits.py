"""Limits: of a message, of calls in flight, and the two meanings of RESOURCE_EXHAUSTED."""

import asyncio

import grpc
import pytest
from grpc import aio

from libs.faults.fault import Fault
from libs.faults.wire import from_rpc_error
from tests.support.generated_echo import pb2
from tests.support.hop import Hops

LIMIT = 64 * 1024


@pytest.mark.parametrize(
    "kind, size", [("bidi", LIMIT + 1), ("client_stream", LIMIT + 1), ("unary", 0), ("server_stream", 0)]
)
async def test_a_message_over_the_limit_does_not_travel(hops: Hops, kind: str, size: int):
    """OPS-4: message limits are set; more than that is RESOURCE_EXHAUSTED, never retryable, whoever sends it."""

    async def large(request, context):
        return pb2.EchoResponse(payload=b"x" * (LIMIT + 1))

    async def large_stream(request, context):
        yield pb2.EchoResponse(payload=b"x" * (LIMIT + 1))

    hop = await hops.open(unary=large, server_stream=large_stream, message_limit_bytes=LIMIT)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.call(kind, pb2.EchoRequest(payload=b"x" * size))
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    fault = from_rpc_error(failed.value)
    assert (fault.code, fault.retryable) == ("transport_limit", False)


async def test_an_answer_may_be_larger_than_what_was_asked(hops: Hops):
    """OPS-4 SYN-7: answers have a limit of their own, above that of requests: what was paid for must travel."""

    async def large(request, context):
        return pb2.EchoResponse(payload=b"x" * (4 * LIMIT))

    async def large_stream(request, context):
        yield pb2.EchoResponse(payload=b"x" * (4 * LIMIT))

    hop = await hops.open(
        unary=large, server_stream=large_stream, message_limit_bytes=LIMIT, answer_limit_bytes=5 * LIMIT
    )
    for kind in ("unary", "server_stream"):
        await hop.call(kind, pb2.EchoRequest())
        with pytest.raises(aio.AioRpcError):
            await hop.call(kind, pb2.EchoRequest(payload=b"x" * (LIMIT + 1)))


async def test_a_message_at_the_limit_travels(hops: Hops):
    """OPS-4: the limit itself is allowed."""
    hop = await hops.open(message_limit_bytes=LIMIT)
    payload = b"x" * (LIMIT - len(pb2.EchoRequest(payload=b"x" * LIMIT).SerializeToString()) + LIMIT)
    assert len(pb2.EchoRequest(payload=payload).SerializeToString()) == LIMIT
    assert (await hop.stub.Unary(pb2.EchoRequest(payload=payload), timeout=20)).payload == payload


async def test_exhausted_resources_are_told_apart_by_reason_alone(hops: Hops):
    """ERR-2: RESOURCE_EXHAUSTED means no capacity, or too large, or too busy; only ErrorInfo.reason tells which."""

    async def unary(request, context):
        raise Fault.of("capacity_exhausted", "received message larger than max")

    hop = await hops.open(unary=unary, message_limit_bytes=LIMIT)
    codes = []
    for request in (pb2.EchoRequest(), pb2.EchoRequest(payload=b"x" * (LIMIT + 1))):
        with pytest.raises(aio.AioRpcError) as failed:
            await hop.stub.Unary(request, timeout=20)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        fault = from_rpc_error(failed.value)
        codes.append((fault.code, fault.retryable))
    assert codes == [("capacity_exhausted", True), ("transport_limit", False)]


async def test_calls_above_the_limit_are_shed_by_name(hops: Hops):
    """OPS-4: calls in flight are bounded; what comes above is told `overloaded` with a time to wait."""
    release, begun = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        begun.set()
        await release.wait()
        return pb2.EchoResponse(text="served")

    hop = await hops.open(unary=unary, call_limit=1)
    first = asyncio.create_task(_ask(hop))
    await begun.wait()
    with pytest.raises(aio.AioRpcError) as failed:
        await _ask(hop)
    fault = from_rpc_error(failed.value)
    assert (fault.code, fault.retryable, fault.retry_after_ms) == ("overloaded", True, 1000)
    release.set()
    assert (await first).text == "served"
    assert (await _ask(hop)).text == "served"


async def _ask(hop):
    return await hop.stub.Unary(pb2.EchoRequest(), timeout=20)

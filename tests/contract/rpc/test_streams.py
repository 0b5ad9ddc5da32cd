"""The four kinds of call, in both styles of the client."""

import asyncio

import pytest
from grpc import aio

from libs.faults.wire import from_rpc_error
from libs.rpc.limits import STREAM_BUFFER_MESSAGES
from tests.support.generated_echo import pb2
from tests.support.hop import Hops


def texts(*words: str):
    """Requests with these texts."""
    return [pb2.EchoRequest(text=word) for word in words]


async def async_texts(*words: str):
    """The same, asynchronously."""
    for word in words:
        await asyncio.sleep(0)
        yield pb2.EchoRequest(text=word)


async def test_a_stream_of_answers_is_complete_and_in_order(hops: Hops):
    """More messages than any buffer holds arrive all, in order, and the stream ends."""
    hop = await hops.open()
    many = STREAM_BUFFER_MESSAGES * 20
    seen = [m.number async for m in hop.stub.ServerStream(pb2.EchoRequest(number=many), timeout=60)]
    assert seen == list(range(many))


async def test_read_ends_with_eof(hops: Hops):
    """The reader style: messages, then EOF."""
    hop = await hops.open()
    call = hop.stub.ServerStream(pb2.EchoRequest(number=2), timeout=20)
    assert [(await call.read()).number, (await call.read()).number] == [0, 1]
    assert await call.read() is aio.EOF


@pytest.mark.parametrize("source", [lambda: iter(texts("a", "b", "c")), lambda: async_texts("a", "b", "c")])
async def test_a_stream_of_requests_from_an_iterator(hops: Hops, source):
    """An iterator, plain or asynchronous, is sent to its end."""
    hop = await hops.open()
    answer = await hop.stub.ClientStream(source(), timeout=20)
    assert (answer.text, answer.number) == ("a b c", 3)


async def test_a_stream_of_requests_by_writing(hops: Hops):
    """The writer style: write, done_writing, await."""
    hop = await hops.open()
    call = hop.stub.ClientStream(timeout=20)
    for request in texts("a", "b"):
        await call.write(request)
    await call.done_writing()
    assert (await call).text == "a b"
    with pytest.raises(asyncio.InvalidStateError):
        await call.write(pb2.EchoRequest())


async def test_both_ways_at_once(hops: Hops):
    """Question and answer take turns on one call."""
    hop = await hops.open()
    call = hop.stub.Bidi(timeout=20)
    answers = []
    for request in texts("a", "b", "c"):
        await call.write(request)
        answers.append((await call.read()).text)
    await call.done_writing()
    assert await call.read() is aio.EOF
    assert answers == ["a", "b", "c"]


async def test_both_ways_from_an_iterator(hops: Hops):
    """The iterator style of a call with two streams."""
    hop = await hops.open()
    many = [str(number) for number in range(STREAM_BUFFER_MESSAGES * 5)]
    assert [m.text async for m in hop.stub.Bidi(iter(texts(*many)), timeout=60)] == many


async def test_a_handler_may_answer_before_it_has_read_everything(hops: Hops):
    """A handler that has seen enough ends the call; what was not read is dropped."""

    async def first_only(requests, context):
        async for request in requests:
            return pb2.EchoResponse(text=request.text)

    hop = await hops.open(client_stream=first_only)
    assert (await hop.stub.ClientStream(iter(texts(*"abcdefgh" * 10)), timeout=20)).text == "a"


async def test_a_failing_iterator_cancels_the_call(hops: Hops):
    """A caller whose source of requests breaks does not leave the handler waiting."""
    ended = asyncio.Event()

    async def wait_for_all(requests, context):
        try:
            async for _ in requests:
                pass
            await asyncio.Event().wait()
        finally:
            ended.set()

    def source():
        yield pb2.EchoRequest()
        raise RuntimeError("the source broke")

    hop = await hops.open(client_stream=wait_for_all)
    with pytest.raises((asyncio.CancelledError, aio.AioRpcError)):
        await hop.stub.ClientStream(source(), timeout=60)
    async with asyncio.timeout(20):
        await ended.wait()


async def test_a_slow_reader_holds_the_writer_back(hops: Hops):
    """OPS-4: queues are bounded: a handler cannot run far ahead of a reader that does not read."""
    sent = 0

    async def flood(request, context):
        nonlocal sent
        while True:
            yield pb2.EchoResponse(payload=b"x" * 60_000)
            sent += 1

    hop = await hops.open(server_stream=flood)
    call = hop.stub.ServerStream(pb2.EchoRequest(), timeout=60)
    await call.read()
    before = -1
    while before != sent:  # until the writer has come to rest
        before = sent
        for _ in range(200):
            await asyncio.sleep(0)
    assert sent < 1000
    call.cancel()


async def test_an_unreadable_message_in_a_stream_is_refused(hops: Hops):
    """EDG-3: also in the middle of a stream of requests."""
    hop = await hops.open()
    raw = hop.channels.to("echo").stream_unary("/pointsman.testing.v1.EchoService/ClientStream")
    with pytest.raises(aio.AioRpcError) as failed:
        await raw(iter([b"", b"\xff\xff\xff"]), timeout=20)
    assert from_rpc_error(failed.value).code == "malformed_request"

"""Status and details: how a call ends, and that nothing but the fault travels."""

import logging
from urllib.parse import quote

import grpc
import pytest
from grpc import aio

from libs.faults.fault import Fault, FieldError
from libs.faults.wire import from_rpc_error
from libs.rpc.address import parse
from libs.rpc.faulting import faulting, faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from tests.support.generated_echo import pb2, pb2_grpc
from tests.support.hop import KINDS, Hops, servicer

FAULT = Fault.of(
    "rate_limited",
    "429 from ark-main",
    retry_after_ms=2500,
    provider="ark",
    provider_code="RateLimit",
    provider_message="slow down",
    errors=(FieldError("/input/n", "too many"),),
    metadata={"gate": "concurrency"},
)


async def test_an_answer_is_what_the_handler_returned(hops: Hops):
    """A unary call gives the handler's message, status OK and empty metadata."""
    hop = await hops.open()
    call = hop.stub.Unary(pb2.EchoRequest(text="grüße", number=7, payload=b"\x00\xff"), timeout=20)
    answer = await call
    assert (answer.text, answer.number, answer.payload) == ("grüße", 7, b"\x00\xff")
    assert await call.code() is grpc.StatusCode.OK
    assert list(await call.trailing_metadata()) == []
    assert call.done()
    assert not call.cancelled()
    assert (await call).text == "grüße"


async def test_a_fault_arrives_as_it_was_raised(hops: Hops):
    """ERR-2: reason, category, scope, retryable, RetryInfo, field violations and provider facts cross the channel."""

    async def unary(request, context):
        raise FAULT

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert failed.value.details() == "429 from ark-main"
    assert from_rpc_error(failed.value) == FAULT


async def test_a_fault_with_many_field_errors_arrives_whole(hops: Hops):
    """CAT-1: a bad catalogue is refused with every fault named by path, however many they are."""
    errors = tuple(FieldError(f"/models/{n}/bindings/0/supply", f"no supply 'x-{n}'") for n in range(250))
    many = Fault.of("catalog_invalid", "250 faults", errors=errors)

    async def unary(request, context):
        raise many

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert from_rpc_error(failed.value) == many


async def test_a_fault_too_large_for_metadata_is_cut_and_says_so(hops: Hops):
    """ERR-2: rather a fault that counts what it leaves out than none."""
    errors = tuple(FieldError(f"/items/{n}", "is not acceptable, " * 20) for n in range(1000))

    async def unary(request, context):
        raise Fault.of("validation_failed", "x" * 100_000, errors=errors)

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    fault = from_rpc_error(failed.value)
    assert fault.code == "validation_failed"
    assert fault.errors[:-1] == errors[: len(fault.errors) - 1]
    assert fault.errors[-1].reason == f"and {1000 - len(fault.errors) + 1} more"


WORDS = {"plain": "is not acceptable here", "chinese": "\u4e0d\u53ef\u63a5\u53d7" * 9, "percent": "%" * 40}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("count", [1, 40, 2000])
async def test_any_client_of_grpc_is_told_what_is_wrong(words: str, count: int):
    """ERR-2, RUN-3: who comes by a public port with a client as gRPC makes it, which takes 8 KiB of metadata, gets the
    status of the fault, its code, the first fields that are wrong, and how many more there are."""
    errors = [(f"/production/nodes/{n}/input/duration_s", f"{n}: {words}") for n in range(count)]
    refusal = Fault.invalid(*errors).replaced(provider_message=words * 50, metadata={"reference": words * 50})

    async def unary(request, context):
        raise refusal

    address = parse("127.0.0.1:0")
    server = RpcServer([address], public=[address], registry=LoopbackRegistry(), metrics=Metrics())
    server.add(lambda target: pb2_grpc.add_EchoServiceServicer_to_server(servicer(unary), target))
    await server.start()
    try:
        async with aio.insecure_channel(server.bound[address].target) as channel:
            with pytest.raises(aio.AioRpcError) as failed:
                await pb2_grpc.EchoServiceStub(channel).Unary(pb2.EchoRequest(), timeout=20)
    finally:
        await server.close(grace_s=0.2, finish_s=5.0)
    told = from_rpc_error(failed.value)
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT, failed.value.details()
    assert (told.code, told.category) == (refusal.code, refusal.category)
    assert told.message[:-1] == refusal.message[: len(told.message) - 1]
    more = told.errors[-1].reason if not told.errors[-1].pointer else ""
    whole = told.errors[:-1] if more else told.errors
    assert [error.pointer for error in whole] == [pointer for pointer, _ in errors[: len(whole)]]
    assert len(whole) >= min(count, 10)
    assert more == (f"and {count - len(whole)} more" if len(whole) < count else "")
    assert on_the_line(failed.value) < 8 * 1024


def on_the_line(error: aio.AioRpcError) -> int:
    """What an error takes on a line that writes bytes as text: base64 for the status, %XX for the message."""
    status = sum(-(-len(value) // 3) * 4 for key, value in error.trailing_metadata() if key.endswith("-bin"))
    return status + len(quote(error.details() or "", safe=""))


async def read_into(seen, stream):
    """Keep the numbers of a stream that may fail."""
    async for message in stream:
        seen.append(message.number)


async def test_a_fault_ends_a_stream_after_its_messages(hops: Hops):
    """ERR-2: what was sent before the fault is read first, then the fault."""

    async def server_stream(request, context):
        yield pb2.EchoResponse(number=1)
        yield pb2.EchoResponse(number=2)
        raise FAULT

    hop = await hops.open(server_stream=server_stream)
    seen = []
    with pytest.raises(aio.AioRpcError) as failed:
        await read_into(seen, hop.stub.ServerStream(pb2.EchoRequest(), timeout=20))
    assert seen == [1, 2]
    assert from_rpc_error(failed.value) == FAULT


async def test_peers_speak_of_faults(hops: Hops):
    """ERR-2: gRPC does not pass the peers: both forms raise the Fault and keep the cause."""

    async def unary(request, context):
        raise FAULT

    hop = await hops.open(unary=unary)

    @faulting
    async def ask():
        return await hop.stub.Unary(pb2.EchoRequest(), timeout=20)

    with pytest.raises(Fault) as by_decorator:
        await ask()
    assert by_decorator.value == FAULT
    assert isinstance(by_decorator.value.__cause__, aio.AioRpcError)
    with pytest.raises(Fault) as by_block:
        async with faults_from_rpc():
            await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert by_block.value == FAULT


async def test_a_fault_passes_through_two_hops(hops: Hops):
    """ERR-2: a context that hands a peer's fault on changes nothing of it."""

    async def fail(request, context):
        raise FAULT

    far = await hops.open(unary=fail)

    async def ask(request, context):
        async with faults_from_rpc():
            return await far.stub.Unary(request, timeout=20)

    near = await hops.open(unary=ask)
    with pytest.raises(Fault) as failed:
        async with faults_from_rpc():
            await near.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert failed.value == FAULT


@pytest.mark.parametrize("kind", KINDS)
async def test_the_text_of_an_unhandled_exception_stays_here(hops: Hops, kind: str, caplog: pytest.LogCaptureFixture):
    """ERR-2: own bug is INTERNAL with a reference id and no text; the text is in the log under that reference.

    Guards against gRPC for Python, which sends `Unexpected <class>: <text>` to the client.
    """

    async def broken(request, context):
        raise RuntimeError("the password is tortoise")

    async def broken_stream(request, context):
        raise RuntimeError("the password is tortoise")
        yield

    behaviour = broken_stream if kind in ("server_stream", "bidi") else broken
    hop = await hops.open(**{kind: behaviour}, new_reference=lambda: "ref-17")
    with caplog.at_level(logging.ERROR), pytest.raises(aio.AioRpcError) as failed:
        await hop.call(kind, pb2.EchoRequest())
    fault = from_rpc_error(failed.value)
    assert (failed.value.code(), fault.code, fault.message) == (
        grpc.StatusCode.INTERNAL,
        "internal",
        "reference ref-17",
    )
    assert fault.metadata == {"reference": "ref-17"}
    everything = repr(failed.value) + repr(failed.value.trailing_metadata())
    assert "tortoise" not in everything
    assert "RuntimeError" not in everything
    assert any("ref-17" in record.getMessage() and record.exc_info for record in caplog.records)


async def test_an_answer_that_cannot_be_encoded_is_our_bug(hops: Hops):
    """ERR-2: also what fails after the handler has returned stays without text."""

    async def unary(request, context):
        return "no message"

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert from_rpc_error(failed.value).code == "internal"


async def test_bytes_that_are_no_message_are_the_caller_s_fault(hops: Hops):
    """EDG-3: what cannot be decoded is refused by name, without the decoder's words."""
    hop = await hops.open()
    raw = hop.channels.to("echo").unary_unary("/pointsman.testing.v1.EchoService/Unary")
    with pytest.raises(aio.AioRpcError) as failed:
        await raw(b"\xff\xff\xff", timeout=20)
    fault = from_rpc_error(failed.value)
    assert (fault.code, fault.message) == ("malformed_request", "the request message cannot be decoded")


async def test_a_method_that_nobody_wrote_is_unimplemented(hops: Hops):
    """OPS-7: a method that the release does not know is told as such, known to the contract or not."""
    hop = await hops.open()
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Missing(pb2.EchoRequest(), timeout=20)
    assert from_rpc_error(failed.value).code == "unimplemented"
    unknown = hop.channels.to("echo").unary_unary("/pointsman.testing.v1.EchoService/FromTheFuture")
    with pytest.raises(aio.AioRpcError) as failed:
        await unknown(b"", timeout=20)
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_peer_that_is_not_there_is_unavailable(hops: Hops):
    """OPS-2: nobody listening is `peer_unavailable` on every transport, at once and not at the deadline."""
    hop = await hops.open()
    await hop.server.close(grace_s=0.1)
    with pytest.raises(Fault) as failed:
        async with faults_from_rpc():
            await hop.stub.Unary(pb2.EchoRequest(), timeout=60)
    assert failed.value.code == "peer_unavailable"


async def test_a_status_set_by_hand_is_sent(hops: Hops):
    """gRPC's own servicers abort by themselves; that passes the chain untouched."""

    async def unary(request, context):
        context.set_trailing_metadata((("why", "because"),))
        await context.abort(grpc.StatusCode.DATA_LOSS, "gone")

    hop = await hops.open(unary=unary)
    with pytest.raises(aio.AioRpcError) as failed:
        await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.DATA_LOSS, "gone")
    assert ("why", "because") in tuple(failed.value.trailing_metadata())


async def test_every_call_is_counted_by_its_outcome(hops: Hops):
    """OPS-5: calls served are counted by method and by `ok` or the code of their fault."""

    async def unary(request, context):
        if request.text:
            raise Fault.of("not_found")
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary)
    await hop.stub.Unary(pb2.EchoRequest(), timeout=20)
    with pytest.raises(aio.AioRpcError):
        await hop.stub.Unary(pb2.EchoRequest(text="x"), timeout=20)
    await hop.server.running.wait_idle(20)
    counted = {
        outcome: hop.metrics.counter(
            names.RPC_SERVER_ENDED, service="pointsman.testing.v1.EchoService", method="Unary", outcome=outcome
        )._value.get()
        for outcome in ("ok", "not_found", "internal")
    }
    assert counted == {"ok": 1, "not_found": 1, "internal": 0}

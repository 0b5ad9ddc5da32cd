"""Metadata and identity: what goes along, what comes back, what never leaves."""

from contextvars import ContextVar

from libs.rpc.identity import Identity, Secret, acting_for, current_identity
from libs.telemetry.correlation import carry_traceparent, current_traceparent, facts
from tests.support.generated_echo import pb2
from tests.support.hop import Hops

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_metadata_goes_both_ways(hops: Hops):
    """Client metadata reaches the handler; initial and trailing metadata reach the client, text and binary."""
    seen = {}

    async def unary(request, context):
        seen.update(context.invocation_metadata())
        await context.send_initial_metadata((("first", "1"),))
        context.set_trailing_metadata((("last", "2"), ("raw-bin", b"\x00\x01")))
        return pb2.EchoResponse()

    hop = await hops.open(unary=unary)
    call = hop.stub.Unary(pb2.EchoRequest(), timeout=20, metadata=(("x-colour", "blue"), ("blob-bin", b"\xfe")))
    assert ("first", "1") in tuple(await call.initial_metadata())
    await call
    trailing = tuple(await call.trailing_metadata())
    assert ("last", "2") in trailing
    assert ("raw-bin", b"\x00\x01") in trailing
    assert seen["x-colour"] == "blue"
    assert seen["blob-bin"] == b"\xfe"


async def test_the_caller_request_and_tenant_are_known_to_the_handler(hops: Hops):
    """EDG-1: the request id goes along every hop, with the tenant; each hop names itself as the caller."""
    told: list[Identity] = []

    async def remember(request, context):
        told.append(current_identity())
        return pb2.EchoResponse(seen=dict(facts()))

    far = await hops.open(unary=remember)
    far_stub = far.stub_as("routing")

    async def ask(request, context):
        told.append(current_identity())
        return await far_stub.Unary(request, timeout=20)

    near = await hops.open(unary=ask)
    with acting_for(Identity("", "01JREQUEST", "studio-a", Secret("Bearer user-key"))):
        answer = await near.stub_as("edge").Unary(pb2.EchoRequest(), timeout=20)
    assert [(who.caller, who.request_id, who.tenant) for who in told] == [
        ("edge", "01JREQUEST", "studio-a"),
        ("routing", "01JREQUEST", "studio-a"),
    ]
    assert answer.seen["request_id"] == "01JREQUEST"
    assert answer.seen["rpc_method"] == "/pointsman.testing.v1.EchoService/Unary"


async def test_a_user_s_key_is_shown_once_and_never_passed_on(hops: Hops):
    """ERR-4: the bearer key reaches the servicer it was sent to, does not print itself, and goes no further."""
    keys = []

    async def remember(request, context):
        keys.append(current_identity().authorization)
        return pb2.EchoResponse(text=repr(current_identity()))

    far = await hops.open(unary=remember)

    async def ask(request, context):
        keys.append(current_identity().authorization)
        return await far.stub.Unary(request, timeout=20)

    near = await hops.open(unary=ask)
    await near.stub.Unary(pb2.EchoRequest(), timeout=20, metadata=(("authorization", "Bearer user-key"),))
    assert keys[0] is not None
    assert keys[0].reveal() == "Bearer user-key"
    assert "user-key" not in repr(keys[0])
    assert keys[1] is None


async def test_a_trace_goes_along_without_a_tracing_sdk(hops: Hops):
    """OPS-5: a trace that begins and ends elsewhere is not cut by this process."""
    seen = []

    async def remember(request, context):
        seen.append(current_traceparent())
        return pb2.EchoResponse()

    far = await hops.open(unary=remember)

    async def ask(request, context):
        return await far.stub.Unary(request, timeout=20)

    near = await hops.open(unary=ask)
    carry_traceparent(TRACE)
    await near.stub.Unary(pb2.EchoRequest(), timeout=20)
    assert seen == [TRACE]


async def test_nothing_else_of_the_caller_reaches_the_handler(hops: Hops):
    """A handler sees the caller's metadata and not its context variables, in one process as over a socket."""
    private: ContextVar[str] = ContextVar("private", default="nothing")

    async def unary(request, context):
        return pb2.EchoResponse(text=private.get())

    hop = await hops.open(unary=unary)
    private.set("the caller's")
    assert (await hop.stub.Unary(pb2.EchoRequest(), timeout=20)).text == "nothing"


async def test_messages_are_never_shared(hops: Hops):
    """What the handler does to its request or keeps of its answer is its own affair."""
    kept = []

    async def unary(request, context):
        request.text = "changed"
        answer = pb2.EchoResponse(text="answer")
        kept.append(answer)
        return answer

    hop = await hops.open(unary=unary)
    request = pb2.EchoRequest(text="mine")
    answer = await hop.stub.Unary(request, timeout=20)
    kept[0].text = "changed later"
    assert (request.text, answer.text) == ("mine", "answer")

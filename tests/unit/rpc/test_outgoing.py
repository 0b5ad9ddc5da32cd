"""What goes along with a call, and how much time it is given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faulting
from libs.rpc.identity import Identity, Secret
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.outgoing import MARGIN_S, outgoing_timeout
from libs.rpc.server import RpcServer
from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from tests.support.generated_echo import pb2, pb2_grpc
from tests.support.hop import servicer
from tests.support.tracing import Recorded

SECONDS = st.floats(0, 1e6)


@given(st.none() | SECONDS, SECONDS, SECONDS)
def test_no_hop_asks_for_more_than_remains(own: float | None, deadline: float, now: float):
    """OPS-4: outgoing timeout = min(own, remaining - margin), never negative, whatever the figures."""
    timeout = outgoing_timeout(own, deadline, now)
    assert timeout is not None
    assert 0 <= timeout <= max(0.0, deadline - now)
    if own is not None:
        assert timeout <= own


@pytest.mark.parametrize(
    "own, remaining, expected",
    [
        (None, 10.0, 10.0 - MARGIN_S),
        (2.0, 10.0, 2.0),
        (20.0, 10.0, 10.0 - MARGIN_S),
        (None, 0.1, 0.095),
        (5.0, -1.0, 0.0),
    ],
)
def test_the_margin_leaves_time_to_answer(own: float | None, remaining: float, expected: float):
    """OPS-4: 10 ms, or five per cent of a short time, stay with the caller."""
    assert outgoing_timeout(own, 100.0 + remaining, 100.0) == pytest.approx(expected)


def test_without_a_deadline_the_own_timeout_counts():
    """A tick has no caller: what it asks for is what it gets."""
    assert outgoing_timeout(3.0, None, 100.0) == 3.0
    assert outgoing_timeout(None, None, 100.0) is None


def test_a_key_is_no_part_of_what_is_passed_on():
    """ERR-4: the metadata of an identity holds caller, request and tenant, never the key."""
    identity = Identity("edge", "01J", "studio-a", Secret("Bearer abc"))
    assert identity.metadata("routing") == (
        ("x-pointsman-caller", "routing"), ("x-request-id", "01J"), ("x-pointsman-tenant", "studio-a"),
    )  # fmt: skip
    assert "abc" not in repr(identity)


async def test_spans_of_both_sides_are_one_trace():
    """OPS-5: with an SDK, a call is a CLIENT span and a SERVER span of one trace, through two hops, failures marked by
    their codes alone."""
    kept = Recorded()
    tracer = kept.tracer
    assert tracer is not None
    registry = LoopbackRegistry()
    channels = Channels(registry=registry, tracer=tracer)
    stub = pb2_grpc.EchoServiceStub(channels.to("echo"))

    async def unary(request, context):
        if request.text == "fail":
            raise Fault.of("not_found")
        return await stub.Unary(pb2.EchoRequest(text="fail"), timeout=5)

    server = RpcServer(registry=registry, metrics=Metrics(), tracer=tracer)
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(unary=faulting(unary)), s))
    await server.start()
    with pytest.raises(Fault), tracer.start_as_current_span("a request"):
        await faulting(lambda: stub.Unary(pb2.EchoRequest(), timeout=5))()
    await channels.close()
    await server.close(0.1)
    root, spans = kept.named("a request"), [span for span in kept.spans if span.name != "a request"]
    assert len({span.context.trace_id for span in spans}) == 1
    kinds = sorted(span.kind.name for span in spans)
    assert kinds == ["CLIENT", "CLIENT", "SERVER", "SERVER"]
    assert {span.name for span in spans} == {"pointsman.testing.v1.EchoService/Unary"}
    assert all(span.status.status_code is trace.StatusCode.ERROR for span in spans)
    assert {span.attributes[names.ERROR_TYPE] for span in spans} == {"not_found", "NOT_FOUND"}
    assert not any(span.events for span in spans), "an exception's text may hold what a user wrote"
    assert [span.parent.span_id for span in spans].count(root.context.span_id) == 1


async def test_a_background_round_begins_no_trace():
    """OPS-5: what a context asks outside of a trace is no trace of its own; who comes from outside begins one."""
    kept = Recorded()
    registry = LoopbackRegistry()
    channels = Channels(registry=registry, tracer=kept.tracer)

    async def unary(request, context):
        return pb2.EchoResponse()

    server = RpcServer(registry=registry, metrics=Metrics(), tracer=kept.tracer)
    server.add(lambda s: pb2_grpc.add_EchoServiceServicer_to_server(servicer(unary=unary), s))
    await server.start()
    await pb2_grpc.EchoServiceStub(channels.for_caller("runs").to("echo")).Unary(pb2.EchoRequest(), timeout=5)
    assert kept.spans == ()
    await pb2_grpc.EchoServiceStub(channels.to("echo")).Unary(pb2.EchoRequest(), timeout=5)
    assert [span.kind.name for span in kept.spans] == ["SERVER"]
    await channels.close()
    await server.close(0.1)

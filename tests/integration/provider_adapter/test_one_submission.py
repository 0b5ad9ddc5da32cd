"""Real sockets: a provider that reads the whole request and hangs up has been asked once, by every adapter."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from libs.faults.fault import Fault
from libs.host.world import real_world
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.provider_adapter.v1 import provider_pb2
from pointsman.provider_adapter.v1 import provider_service_pb2 as pb
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import ProviderServiceStub
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.compose import build
from services.provider_adapter.settings import Settings
from tests.integration.provider_adapter.raw_server import Act, RawServer, answers, drops, resets

INPUTS: dict[str, dict[str, Any]] = {
    "video": {"prompt": "a storm", "duration_s": 8},
    "image": {"prompt": "a storm"},
    "speech": {"text": "Good evening."},
}
WORKS = [(name, kind) for name, each in ADAPTERS.items() for kind in each.manifest.kinds if kind in INPUTS]
FILMS = [name for name, kind in WORKS if kind == "video"]


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[Any]:
    """The real service behind the loopback channel, with the real driver."""
    registry = LoopbackRegistry()
    async with contextlib.AsyncExitStack() as stack:
        channels = await stack.enter_async_context(Channels(registry=registry, caller="routing"))
        context = build(Settings(str(tmp_path), environment={"KEY": "k"}), channels, real_world())
        server = RpcServer(registry=registry)
        for _, add in context.registrations:
            server.add(add)
        await context.start()
        stack.push_async_callback(context.stop)
        await server.start()
        stack.push_async_callback(server.close)
        yield ProviderServiceStub(channels.to("provider_adapter"))


def asked(name: str, kind: str, server: RawServer) -> dict[str, Any]:
    """The channel to the raw server and a job of that kind."""
    values = Struct()
    values.update(INPUTS[kind])
    return {
        "channel": provider_pb2.ChannelEndpoint(
            channel_id="c", adapter=name, base_url=server.url, secret_ref="env:KEY"
        ),
        "job": provider_pb2.ProviderJob(
            attempt_id="a", client_token="token-1", kind=kind, upstream_model="a-model", input=values
        ),
    }


async def fault_of(call: Any) -> Fault:
    """The fault in which a call ends."""
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await call
    return caught.value


@pytest.mark.parametrize("act", [drops, resets, answers("200 OK", b'{"cut', length=900)], ids=["drop", "reset", "cut"])
@pytest.mark.parametrize(("name", "kind"), WORKS)
async def test_a_request_that_was_read_is_not_sent_again(stub: Any, name: str, kind: str, act: Act) -> None:
    """ERR-1a ATT-5: exactly one request with its body on the wire, and the outcome is unknown, never retryable."""
    async with RawServer([act]) as server:
        fault = await fault_of(stub.Submit(pb.SubmitRequest(**asked(name, kind, server)), timeout=20))
    assert (fault.code, fault.scope, fault.retryable) == ("submission_unknown", "attempt", False)
    assert len(server.requests) == 1
    assert server.requests[0].startswith("POST ")
    assert server.bodies[0]


@pytest.mark.parametrize("name", [name for name in FILMS if ADAPTERS[name].manifest.cancels])
async def test_a_wish_to_cancel_is_sent_once(stub: Any, name: str) -> None:
    """ATT-8: where cancelling and deleting are one call, a second one would do something else."""
    async with RawServer([drops]) as server:
        request = pb.CancelRequest(**asked(name, "video", server), provider_task_id="task-1")
        fault = await fault_of(stub.Cancel(request, timeout=20))
    assert fault.code == "poll_failed"
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", FILMS)
async def test_finding_out_submits_nothing(stub: Any, name: str) -> None:
    """ATT-6: whatever way a dialect has, no question about an unanswered submission is another submission."""
    async with RawServer([drops]) as server:
        sent = Timestamp()
        sent.FromSeconds(int(time.time()) - 600)
        request = pb.ReconcileRequest(**asked(name, "video", server), submit_time=sent)
        answer = await stub.Reconcile(request, timeout=20)
    assert answer.verdict == provider_pb2.RECONCILE_VERDICT_UNKNOWN
    assert [head for head in server.requests if head.startswith("POST ")] == []

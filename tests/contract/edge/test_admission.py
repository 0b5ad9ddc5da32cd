"""The public gRPC port asks for keys, as HTTP does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.address import LOOPBACK, parse
from libs.rpc.admission import KeyAdmission
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.telemetry.metrics import Metrics
from pointsman.edge.v1 import key_service_pb2
from pointsman.edge.v1.key_service_pb2_grpc import KeyServiceStub
from pointsman.health.v1 import health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub, add_HealthServiceServicer_to_server
from pointsman.routing.v1 import routing_service_pb2
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub, add_RoutingServiceServicer_to_server
from pointsman.runs.v1 import runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub, add_RunsServiceServicer_to_server
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse


@dataclass
class Port:
    """A server with a TCP port that asks for keys, and the doors to it."""

    outside: Channels
    inside: Channels

    async def ask(self, stub: Any, method: str, request: Any, key: str = "") -> Any:
        """Call over TCP; raises Fault."""
        metadata = [("authorization", f"Bearer {key}")] if key else []
        async with faults_from_rpc():
            return await getattr(stub(self.outside.to("port")), method)(request, timeout=5, metadata=metadata)

    async def code(self, stub: Any, method: str, request: Any, key: str = "") -> str:
        """The code of the fault that it ends with, "" for none."""
        try:
            await self.ask(stub, method, request, key)
        except Fault as fault:
            return fault.code
        return ""


@pytest.fixture
async def port(edge: EdgeHouse) -> AsyncIterator[Port]:
    """The fakes behind a public port; the edge knows the keys."""
    registry = LoopbackRegistry()
    asked = parse("127.0.0.1:0")
    admit = KeyAdmission(edge.channels.to("edge"))
    server = RpcServer((LOOPBACK, asked), registry=registry, public=(asked,), admit=admit, metrics=Metrics())
    server.add(lambda s: add_RunsServiceServicer_to_server(edge.runs, s))
    server.add(lambda s: add_RoutingServiceServicer_to_server(edge.routing, s))
    server.add(lambda s: add_HealthServiceServicer_to_server(edge.health, s))
    for _, add_to_server in edge.context.registrations:
        server.add(add_to_server)
    await server.start()
    outside = Channels({"port": server.bound[asked]}, registry=registry)
    inside = Channels(registry=registry, caller="runs")
    try:
        yield Port(outside, inside)
    finally:
        await outside.close(0.0)
        await inside.close(0.0)
        await server.close(0.1)


SNAPSHOT = health_service_pb2.GetSnapshotRequest()


async def test_strangers_show_a_key(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: over TCP a call without a valid key is unauthenticated; a forged caller's name opens nothing."""
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT) == "unauthenticated"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, "wrong") == "unauthenticated"
    forged = HealthServiceStub(port.outside.for_caller("routing").to("port"))
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await forged.GetSnapshot(SNAPSHOT, timeout=5)
    assert caught.value.code == "unauthenticated"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, ADMIN_KEY) == ""


async def test_operators_methods_need_their_scope(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a user's key reaches no operator's method, an operator's makes no keys."""
    _, user = await edge.key("studio", "runs", "invoke")
    _, operator = await edge.key("studio", "operate")
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, user) == "forbidden"
    assert await port.code(HealthServiceStub, "GetSnapshot", SNAPSHOT, operator) == ""
    listing = key_service_pb2.ListKeysRequest()
    assert await port.code(KeyServiceStub, "ListKeys", listing, operator) == "forbidden"
    assert await port.code(KeyServiceStub, "ListKeys", listing, ADMIN_KEY) == ""


async def test_users_name_their_own_tenant(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a user's call is for its own tenant, whatever it writes into the request; operators may name any."""
    edge.runs.add("r1", "owner")
    edge.routing.add("t1", "owner")
    _, owner = await edge.key("owner")
    _, stranger = await edge.key("stranger")
    run = runs_service_pb2.GetRunRequest(run_id="r1", tenant="owner")
    assert (await port.ask(RunsServiceStub, "GetRun", run, owner)).run.id == "r1"
    assert await port.code(RunsServiceStub, "GetRun", run, stranger) == "forbidden"
    anybody = routing_service_pb2.GetTaskRequest(task_id="t1")
    assert await port.code(RoutingServiceStub, "GetTask", anybody, owner) == "forbidden"
    assert await port.code(RoutingServiceStub, "GetTask", anybody, ADMIN_KEY) == ""


async def test_streams_are_checked_too(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a stream of another tenant's events does not begin."""
    edge.runs.add("r1", "owner")
    _, stranger = await edge.key("stranger")
    request = runs_service_pb2.StreamRunEventsRequest(run_id="r1", tenant="owner", page_size=1)
    stub = RunsServiceStub(port.outside.to("port"))

    async def read() -> list[Any]:
        async with faults_from_rpc():
            call = stub.StreamRunEvents(request, timeout=5, metadata=[("authorization", f"Bearer {stranger}")])
            return [reply async for reply in call]

    with pytest.raises(Fault) as caught:
        await read()
    assert caught.value.code == "forbidden"


async def test_calls_need_their_scope_over_grpc_too(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: scope `invoke` calls for its own tenant, streamed or not; a key for runs does not."""
    _, caller = await edge.key("owner", "invoke")
    _, runner = await edge.key("owner", "runs")
    own = routing_service_pb2.InvokeRequest(call_id="c1", tenant="owner", model="m", input=b"{}")
    foreign = routing_service_pb2.InvokeRequest(call_id="c2", tenant="other", model="m", input=b"{}")
    assert await port.code(RoutingServiceStub, "Invoke", own, caller) == ""
    assert await port.code(RoutingServiceStub, "Invoke", own, runner) == "forbidden"
    assert await port.code(RoutingServiceStub, "Invoke", foreign, caller) == "forbidden"
    reading = routing_service_pb2.GetCallRequest(call_id="c1")
    assert await port.code(RoutingServiceStub, "GetCall", reading, caller) == "forbidden"
    assert await stream_code(port, own, caller) == ""
    assert await stream_code(port, foreign, caller) == "forbidden"


async def stream_code(port: Port, request: routing_service_pb2.InvokeRequest, key: str) -> str:
    """The code of the fault that a streamed call ends with, "" for none."""
    stub = RoutingServiceStub(port.outside.to("port"))
    streamed = routing_service_pb2.InvokeStreamRequest(request=request)
    try:
        async with faults_from_rpc():
            async for _ in stub.InvokeStream(streamed, timeout=5, metadata=[("authorization", f"Bearer {key}")]):
                continue
    except Fault as fault:
        return fault.code
    return ""


async def test_our_own_contexts_need_no_key(edge: EdgeHouse, port: Port) -> None:
    """AUTH-1: a call of this process is our own."""
    reply = await HealthServiceStub(port.inside.to("health")).GetSnapshot(SNAPSHOT, timeout=5)
    assert len(reply.subjects) == 2


async def test_a_users_key_is_told_to_nobody(edge: EdgeHouse, port: Port) -> None:
    """ERR-4: the servicer acts for the key's tenant, and no context is named by a stranger."""
    edge.runs.add("r1", "owner")
    _, owner = await edge.key("owner")
    await port.ask(RunsServiceStub, "GetRun", runs_service_pb2.GetRunRequest(run_id="r1", tenant="owner"), owner)
    identity = edge.runs.identities[-1]
    assert (identity.caller, identity.tenant, identity.authorization) == ("", "owner", None)

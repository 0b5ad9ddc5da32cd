"""The edge's fakes behind a public gRPC port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from pointsman.health.v1.health_service_pb2_grpc import add_HealthServiceServicer_to_server
from pointsman.routing.v1.routing_service_pb2_grpc import add_RoutingServiceServicer_to_server
from pointsman.runs.v1.review_service_pb2_grpc import add_ReviewServiceServicer_to_server
from pointsman.runs.v1.runs_service_pb2_grpc import add_RunsServiceServicer_to_server
from tests.contract.edge.house import EdgeHouse


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

    async def fault(self, stub: Any, method: str, request: Any, key: str) -> Fault:
        """The fault that it ends with."""
        with pytest.raises(Fault) as caught:
            await self.ask(stub, method, request, key)
        return caught.value

    async def code(self, stub: Any, method: str, request: Any, key: str = "") -> str:
        """The code of the fault that it ends with, "" for none."""
        try:
            await self.ask(stub, method, request, key)
        except Fault as fault:
            return fault.code
        return ""


@asynccontextmanager
async def public_port(edge: EdgeHouse) -> AsyncIterator[Port]:
    """The fakes behind a public port; the edge knows the keys."""
    registry = LoopbackRegistry()
    asked = parse("127.0.0.1:0")
    admit = KeyAdmission(edge.channels.to("edge"))
    server = RpcServer((LOOPBACK, asked), registry=registry, public=(asked,), admit=admit, metrics=Metrics())
    server.add(lambda s: add_RunsServiceServicer_to_server(edge.runs, s))
    server.add(lambda s: add_ReviewServiceServicer_to_server(edge.reviews, s))
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

"""What a tenant may have open at a public gRPC port."""

import asyncio
from collections.abc import AsyncIterator
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
from pointsman.runs.v1 import run_pb2, runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub, add_RunsServiceServicer_to_server
from tests.contract.edge.house import ADMIN_KEY, EdgeHouse
from tests.support.waiting import eventually

RUNNING = run_pb2.RunState.RUN_STATE_RUNNING


class Door:
    """A public port where a tenant has two calls open at most."""

    def __init__(self, admit: KeyAdmission, channels: Channels) -> None:
        self.admit = admit
        self._stub: Any = RunsServiceStub(channels.to("port"))

    def stream(self, key: str, tenant: str, run_id: str = "r1") -> Any:
        """A stream of events, opened; cancel it to end it."""
        request = runs_service_pb2.StreamRunEventsRequest(run_id=run_id, tenant=tenant, follow=True)
        return self._stub.StreamRunEvents(request, timeout=60, metadata=[("authorization", f"Bearer {key}")])

    async def get(self, key: str, tenant: str, run_id: str = "r1") -> Fault | None:
        """The refusal of a short call, None for none."""
        request = runs_service_pb2.GetRunRequest(run_id=run_id, tenant=tenant)
        try:
            async with faults_from_rpc():
                await self._stub.GetRun(request, timeout=10, metadata=[("authorization", f"Bearer {key}")])
        except Fault as fault:
            return fault
        return None


@pytest.fixture
async def door(edge: EdgeHouse) -> AsyncIterator[Door]:
    """The runs of the fakes behind it."""
    registry, asked = LoopbackRegistry(), parse("127.0.0.1:0")
    admit = KeyAdmission(edge.channels.to("edge"), 2)
    server = RpcServer((LOOPBACK, asked), registry=registry, public=(asked,), admit=admit, metrics=Metrics())
    server.add(lambda s: add_RunsServiceServicer_to_server(edge.runs, s))
    await server.start()
    outside = Channels({"port": server.bound[asked]}, registry=registry)
    try:
        yield Door(admit, outside)
    finally:
        await outside.close(0.0)
        await server.close(0.1)


async def test_calls_of_a_tenant_at_once(edge: EdgeHouse, door: Door) -> None:
    """AUTH-2: one call too many is quota_exceeded with the limit and a remedy; other tenants and operators go on; a
    call that ends, is cancelled or is refused makes room."""
    _, key = await edge.key("studio")
    _, other = await edge.key("other")
    edge.runs.add("r1", "studio", state=RUNNING)
    edge.runs.add("r2", "other", state=RUNNING)
    streams = [door.stream(key, "studio") for _ in range(2)]
    for stream in streams:
        assert (await anext(aiter(stream))).events
    fault = await door.get(key, "studio")
    assert fault is not None
    assert (fault.code, fault.retry_after_ms) == ("quota_exceeded", 2000)
    assert "2 of 2 calls open" in fault.message
    assert fault.message.endswith("raise POINTSMAN_TENANT_GRPC_CALLS")
    assert await door.get(other, "other", "r2") is None
    assert await door.get(ADMIN_KEY, "") is None
    streams[0].cancel()
    await eventually(lambda: door.admit._open["studio"] == 1)
    for _ in range(3):
        assert await door.get(key, "studio") is None
        refused = await door.get(key, "other", "r2")
        assert refused is not None
        assert refused.code == "forbidden"
    edge.runs.succeed("r1", "ab" * 32)
    await edge.runs.announce()
    async with asyncio.timeout(20):
        assert [reply async for reply in streams[1]]
    await eventually(lambda: not door.admit._open)

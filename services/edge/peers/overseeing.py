"""Runs of every tenant over the stub of runs: an empty tenant means any."""

from collections.abc import Sequence
from typing import Any

from libs.rpc.faulting import faulting
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub
from services.edge.domain import run_shapes, shapes
from services.edge.wire import runs as wire

TIMEOUT_S = 10.0


class OverseeingPeer:
    """Implements `ports.overseeing.Overseeing`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RunsServiceStub(channel)

    @faulting
    async def page(
        self, tenant: str, statuses: Sequence[str], label: str, size: int, token: str
    ) -> tuple[list[run_shapes.TenantRun], str]:
        """See the port."""
        states = wire.states(statuses)
        request = pb.ListRunsRequest(tenant=tenant, states=states, label=label, page_size=size, page_token=token)
        reply = await self._stub.ListRuns(request, timeout=TIMEOUT_S)
        return [wire.tenant_run(item) for item in reply.runs], reply.next_page_token

    @faulting
    async def get(self, run_id: str) -> run_shapes.TenantRun:
        """See the port."""
        reply = await self._stub.GetRun(pb.GetRunRequest(run_id=run_id), timeout=TIMEOUT_S)
        return wire.tenant_run(reply.run)

    @faulting
    async def events(self, run_id: str, after: int, size: int) -> list[shapes.RunEvent]:
        """See the port."""
        request = pb.StreamRunEventsRequest(run_id=run_id, after_sequence=after, page_size=size)
        call = self._stub.StreamRunEvents(request, timeout=TIMEOUT_S)
        return [wire.event(item) async for reply in call for item in reply.events]

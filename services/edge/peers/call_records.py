"""Records of synchronous calls over routing's stub: an empty tenant means any."""

from typing import Any

from libs.rpc.faulting import faulting
from libs.rpc.values import time_to_proto
from pointsman.routing.v1.call_list_pb2 import ListCallsRequest
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.edge.domain import call_shapes
from services.edge.wire import calls as wire

TIMEOUT_S = 10.0


class CallRecordsPeer:
    """Implements `ports.call_records.CallRecords`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def page(
        self, tenant: str, which: call_shapes.CallFilter, size: int, token: str
    ) -> tuple[list[call_shapes.TenantCall], str]:
        """See the port."""
        request = ListCallsRequest(
            tenant=tenant,
            model=which.model,
            states=wire.states(which.statuses),
            session_id=which.session_id,
            since_time=time_to_proto(which.since),
            until_time=time_to_proto(which.until),
            page_size=size,
            page_token=token,
        )
        reply = await self._stub.ListCalls(request, timeout=TIMEOUT_S)
        return [wire.tenant_call(item) for item in reply.calls], reply.next_page_token

"""Capacity over its stub."""

from typing import Any

from libs.rpc.faulting import faulting
from pointsman.capacity.v1 import capacity_service_pb2 as pb
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from pointsman.common.v1 import subject_pb2
from services.edge.domain import shapes
from services.edge.wire import operations

TIMEOUT_S = 10.0


class CapacityPeer:
    """Implements `ports.Capacity`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = CapacityServiceStub(channel)

    @faulting
    async def figures(self) -> shapes.Capacity:
        """See the port."""
        reply = await self._stub.GetCapacity(pb.GetCapacityRequest(include_leases=True), timeout=TIMEOUT_S)
        return operations.capacity(reply)

    @faulting
    async def ping(self) -> None:
        """See the port. Asks for a level that does not exist: the cheapest question that reaches the store."""
        nobody = subject_pb2.Subject(kind=operations.CHANNEL, id="-")
        await self._stub.GetCapacity(pb.GetCapacityRequest(subjects=[nobody]), timeout=TIMEOUT_S)

"""Alerts, kept by routing where operators read them."""

from typing import Any

from libs.rpc.faulting import faulting
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub

TIMEOUT_S = 5.0


class AlertsPeer:
    """Implements `ports.Alerts`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def tell(self, kind: str, severity: str, subject: str, message: str, cause: str, link: str) -> None:
        """See the port."""
        request = pb.RaiseAlertRequest(
            kind=kind, severity=severity, subject=subject, message=message, cause=cause, link=link
        )
        await self._stub.RaiseAlert(request, timeout=TIMEOUT_S)

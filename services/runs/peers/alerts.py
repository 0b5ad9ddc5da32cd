"""Alerts, kept by routing where operators read them."""

from typing import Any

from libs.rpc.faulting import faulting
from pointsman.routing.v1 import alert_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.runs.domain.alerting import Alert
from services.runs.domain.trends import Measured

TIMEOUT_S = 5.0


class AlertsPeer:
    """Implements `ports.AlertBook`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def keep(self, alert: Alert, link: str) -> None:
        """See the port."""
        request = pb.RaiseAlertRequest(
            kind=alert.kind,
            severity=alert.severity,
            subject=alert.subject,
            message=alert.message,
            cause=alert.cause,
            link=link,
            sort=alert.sort,
            measure=None if alert.measure is None else _measure(alert.measure),
        )
        await self._stub.RaiseAlert(request, timeout=TIMEOUT_S)


def _measure(measured: Measured) -> alert_pb2.Measure:
    return alert_pb2.Measure(
        figure=measured.figure, unit=measured.unit, baseline=measured.baseline, values=measured.values
    )

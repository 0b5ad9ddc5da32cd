"""Alerts."""

from libs.faults.fault import Fault
from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import alert_pb2, routing_service_pb2
from services.routing.app.tell_findings import Told
from services.routing.domain.alert_kinds import KINDS, SEVERITIES
from services.routing.domain.decision import AlertDraft
from services.routing.ports.alerts import Alert, AlertQuery
from services.routing.wire.task import page_size


def told_from_proto(message: routing_service_pb2.RaiseAlertRequest) -> Told:
    """What is to be told. Fault `validation_failed` naming every field that is missing or not known."""
    wrong = [(f"/{name}", "is required") for name in ("subject", "message") if not getattr(message, name)]
    for name, known in (("kind", KINDS), ("severity", SEVERITIES)):
        if getattr(message, name) not in known:
            wrong.append((f"/{name}", f"must be one of {', '.join(known)}"))
    if wrong:
        raise Fault.invalid(*wrong)
    draft = AlertDraft(message.kind, message.severity, message.subject, message.message, message.cause)
    return Told(draft, message.sort, message.link)


def query_from_proto(message: routing_service_pb2.ListAlertsRequest) -> AlertQuery:
    """Which alerts are asked for."""
    return AlertQuery(
        message.kind, message.subject, message.open_only, page_size(message.page_size), message.page_token
    )


def alert_to_proto(alert: Alert) -> alert_pb2.Alert:
    """One alert."""
    return alert_pb2.Alert(
        id=alert.id,
        kind=alert.kind,
        severity=alert.severity,
        subject=alert.subject,
        message=alert.message,
        cause=alert.cause,
        link=alert.link,
        create_time=time_to_proto(alert.created_at),
        acknowledge_time=time_to_proto(alert.acknowledged_at),
        count=alert.count,
    )

"""Alerts."""

import math
from collections.abc import Iterator

from libs.faults.fault import Fault
from libs.rpc.paging import page_size
from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import alert_pb2, routing_service_pb2
from services.routing.app.tell_findings import Told
from services.routing.domain.alert_kinds import KINDS, SEVERITIES
from services.routing.domain.measure import LONGEST, Measure, MeasuredDraft, trend
from services.routing.ports.alerts import Alert, AlertQuery


def told_from_proto(message: routing_service_pb2.RaiseAlertRequest) -> Told:
    """What is to be told. Fault `validation_failed` naming every field that is missing or not known."""
    wrong = [(f"/{name}", "is required") for name in ("subject", "message") if not getattr(message, name)]
    for name, known in (("kind", KINDS), ("severity", SEVERITIES)):
        if getattr(message, name) not in known:
            wrong.append((f"/{name}", f"must be one of {', '.join(known)}"))
    measure = message.measure if message.HasField("measure") else None
    if measure is not None:
        wrong += _not_measured(measure)
    if wrong:
        raise Fault.invalid(*wrong)
    draft = MeasuredDraft(
        message.kind, message.severity, message.subject, message.message, message.cause, _measure_from_proto(measure)
    )
    return Told(draft, message.sort, message.link)


def _not_measured(measure: alert_pb2.Measure) -> Iterator[tuple[str, str]]:
    yield from ((f"/measure/{name}", "is required") for name in ("figure", "unit") if not getattr(measure, name))
    if not 1 <= len(measure.values) <= LONGEST:
        yield "/measure/values", f"must be 1 to {LONGEST} numbers, the newest last"
    if not all(map(math.isfinite, (measure.baseline, *measure.values))):
        yield "/measure", "must hold finite numbers"


def _measure_from_proto(measure: alert_pb2.Measure | None) -> Measure | None:
    if measure is None:
        return None
    return Measure(measure.figure, measure.unit, measure.baseline, tuple(measure.values))


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
        measure=None if alert.measure is None else _measure_to_proto(alert.measure),
    )


def _measure_to_proto(measure: Measure) -> alert_pb2.Measure:
    return alert_pb2.Measure(
        figure=measure.figure,
        unit=measure.unit,
        baseline=measure.baseline,
        values=measure.values,
        trend=trend(measure),
    )

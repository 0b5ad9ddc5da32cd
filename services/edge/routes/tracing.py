"""The span of a request, by the HTTP conventions of OpenTelemetry; made where the process makes spans at all.

It tells the template of the path and never the path, whose parts and query are the caller's words.
"""

from collections.abc import MutableMapping
from typing import Any

from opentelemetry import trace

from libs.telemetry import names, spans
from libs.telemetry.correlation import facts
from services.edge.routes.gate import CALL_ID, REQUEST_ID, ROUTE

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OURS = 500
"""From this status on the failure is the server's: only then is the span marked as failed."""


def begun(tracer: trace.Tracer, scope: MutableMapping[str, Any]) -> trace.Span:
    """The span of what has come in, in the trace that the caller's headers name."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    told = {names.HTTP_METHOD: _method(scope), names.REQUEST_ID: scope[REQUEST_ID]}
    return spans.at_door(tracer, _method(scope), told, spans.came_with(headers))


def ended(span: trace.Span, scope: MutableMapping[str, Any], status: int, code: str) -> None:
    """End it: `status` as it was answered, `code` of the problem, if it was one."""
    route, whose = scope.get(ROUTE), facts()
    if route is not None:
        span.update_name(f"{_method(scope)} {route}")
    told = {
        names.HTTP_ROUTE: route,
        names.HTTP_STATUS: status,
        names.TENANT: whose.get("tenant"),
        names.CALL_ID: scope.get(CALL_ID),
        names.ERROR_TYPE: code or None,
    }
    spans.tell(span, told)
    if status >= OURS:
        spans.fail(span, code or str(status))
    span.end()


def _method(scope: MutableMapping[str, Any]) -> str:
    method: str = scope["method"]
    return method if method in METHODS else "_OTHER"

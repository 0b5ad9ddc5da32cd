"""Time, outcome and trace of every incoming call.

Without a tracer no span is made, and the trace context that came in is passed on as it is, so that a trace which begins
and ends outside of this process is not cut. What a context of ours asks outside of a trace, in its background rounds,
begins none.
"""

import time
from collections.abc import Callable
from typing import Any

from opentelemetry import trace

from libs.rpc.identity import CALLER, REQUEST_ID, TENANT
from libs.rpc.interceptors.incoming import IncomingCall
from libs.telemetry import metrics as process_metrics
from libs.telemetry import names, spans
from libs.telemetry.correlation import bind, carry_traceparent
from libs.telemetry.metrics import Metrics

TRACEPARENT = "traceparent"
WELL = frozenset({"ok", "cancelled"})
"""Outcomes that are no failure of who serves. A stream whose reader has all that it came for is left before its end."""


class TelemetryInterceptor:
    """Metrics by method, one SERVER span a call, and the facts that log lines carry."""

    def __init__(self, metrics: Metrics = process_metrics.PROCESS, tracer: trace.Tracer | None = None) -> None:
        self._metrics = metrics
        self._tracer = tracer or spans.installed_tracer()
        self._observe: dict[str, Callable[[float], None]] = {}
        self._count: dict[tuple[str, str], Callable[[], None]] = {}

    def opened(self, call: IncomingCall) -> None:
        """Start the clock and, with an SDK, the span."""
        metadata = call.metadata
        facts = {"rpc_method": call.method.path}
        for key, fact in ((REQUEST_ID, "request_id"), (CALLER, "caller"), (TENANT, "tenant")):
            if key in metadata:
                facts[fact] = metadata[key]
        bind(**facts)
        traceparent = metadata.get(TRACEPARENT)
        if traceparent:
            carry_traceparent(traceparent)
        if self._tracer is not None:
            self._start_span(call, self._tracer)
        call.started = time.perf_counter()

    def closed(self, call: IncomingCall) -> None:
        """Stop the clock; telemetry never fails the call."""
        elapsed = time.perf_counter() - call.started
        method = call.method
        observe = self._observe.get(method.path)
        if observe is None:
            observe = self._observe[method.path] = self._metrics.histogram(
                names.RPC_SERVER_SECONDS, service=method.service, method=method.name
            ).observe
        observe(elapsed)
        outcome = call.outcome or "cancelled"
        count: Any = self._count.get((method.path, outcome))
        if count is None:
            count = self._count[(method.path, outcome)] = self._metrics.counter(
                names.RPC_SERVER_ENDED, service=method.service, method=method.name, outcome=outcome
            ).inc
        count()
        if call.span is not None:
            call.span.set_attribute(names.OUTCOME, outcome)
            if outcome not in WELL:
                spans.fail(call.span, outcome)
            call.span.end()

    def _start_span(self, call: IncomingCall, tracer: trace.Tracer) -> None:
        metadata = call.metadata
        parent = spans.came_with({key: value for key, value in metadata.items() if isinstance(value, str)})
        if CALLER in metadata and not spans.names_a_trace(parent):
            return
        facts = {
            names.RPC_SYSTEM: "grpc",
            names.RPC_METHOD: call.method.path.lstrip("/"),
            names.CALLER: metadata.get(CALLER) or None,
            names.REQUEST_ID: metadata.get(REQUEST_ID) or None,
            names.TENANT: metadata.get(TENANT) or None,
        }
        call.span = spans.at_door(tracer, call.method.path.lstrip("/"), facts, parent)

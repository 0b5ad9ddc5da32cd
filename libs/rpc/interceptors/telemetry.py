"""Time, outcome and trace of every incoming call.

Without a tracing SDK nothing is recorded, and the trace context that came in is passed on as it is, so that a trace
which begins and ends outside of this process is not cut.
"""

import time
from collections.abc import Callable
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import propagate, trace

from libs.rpc.identity import CALLER, REQUEST_ID, TENANT
from libs.rpc.interceptors.incoming import IncomingCall
from libs.telemetry import metrics as process_metrics
from libs.telemetry import names
from libs.telemetry.correlation import bind, carry_traceparent
from libs.telemetry.metrics import Metrics

TRACEPARENT = "traceparent"


def installed_tracer() -> trace.Tracer | None:
    """The tracer of the SDK that the host has installed, None without one.

    Asked once per server and per set of channels, so an SDK is installed before they are made.
    """
    if isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    return trace.get_tracer("pointsman.rpc")


class TelemetryInterceptor:
    """Metrics by method, one SERVER span a call, and the facts that log lines carry."""

    def __init__(self, metrics: Metrics = process_metrics.PROCESS, tracer: trace.Tracer | None = None) -> None:
        self._metrics = metrics
        self._tracer = tracer or installed_tracer()
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
            call.span.set_attribute("pointsman.outcome", outcome)
            if outcome != "ok":
                call.span.set_status(trace.StatusCode.ERROR, outcome)
            call.span.end()

    def _start_span(self, call: IncomingCall, tracer: trace.Tracer) -> None:
        carrier = {key: value for key, value in call.metadata.items() if isinstance(value, str)}
        parent = propagate.extract(carrier)
        method = call.method
        call.span = tracer.start_span(
            method.path.lstrip("/"),
            parent,
            trace.SpanKind.SERVER,
            {
                "rpc.system": "grpc",
                "rpc.service": method.service,
                "rpc.method": method.name,
                "pointsman.caller": call.metadata.get(CALLER, ""),
                "pointsman.request_id": call.metadata.get(REQUEST_ID, ""),
            },
        )
        # Attached and never detached: the context is the task's own and ends with it.
        otel_context.attach(trace.set_span_in_context(call.span, parent))

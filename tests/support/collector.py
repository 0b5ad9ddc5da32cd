"""An OpenTelemetry collector of the tests' own on loopback, over HTTP and over gRPC: it keeps what it is sent.

async with collecting("grpc") as collector:
    … OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint …
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from grpc import aio
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb2
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


@dataclass
class Collector:
    """What has arrived. `endpoint` is what a sender is told."""

    endpoint: str = ""
    traces: list[trace_pb2.ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[metrics_pb2.ExportMetricsServiceRequest] = field(default_factory=list)

    @property
    def spans(self) -> list[Any]:
        """Every span."""
        scopes = [scope for sent in self.traces for each in sent.resource_spans for scope in each.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    @property
    def metric_names(self) -> set[str]:
        """The names of all metrics."""
        scopes = [scope for sent in self.metrics for each in sent.resource_metrics for scope in each.scope_metrics]
        return {metric.name for scope in scopes for metric in scope.metrics}

    def senders(self) -> set[str]:
        """The `service.name` of everything that arrived."""
        resources = [each.resource for sent in self.traces for each in sent.resource_spans]
        resources += [each.resource for sent in self.metrics for each in sent.resource_metrics]
        return {
            item.value.string_value
            for resource in resources
            for item in resource.attributes
            if item.key == "service.name"
        }


@asynccontextmanager
async def collecting(protocol: str) -> AsyncIterator[Collector]:
    """A collector for `http/protobuf` or `grpc`, gone at the end."""
    collector = Collector()
    opened = _over_grpc if protocol == "grpc" else _over_http
    async with opened(collector):
        yield collector


@asynccontextmanager
async def _over_http(collector: Collector) -> AsyncIterator[None]:
    async def traces(request: web.Request) -> web.Response:
        collector.traces.append(trace_pb2.ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    async def metrics(request: web.Request) -> web.Response:
        collector.metrics.append(metrics_pb2.ExportMetricsServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    app = web.Application()
    app.add_routes([web.post("/v1/traces", traces), web.post("/v1/metrics", metrics)])
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        collector.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _over_grpc(collector: Collector) -> AsyncIterator[None]:
    class Traces(TraceServiceServicer):
        async def Export(self, request: Any, context: Any) -> Any:
            """Keep it."""
            collector.traces.append(request)
            return trace_pb2.ExportTraceServiceResponse()

    class Metrics(MetricsServiceServicer):
        async def Export(self, request: Any, context: Any) -> Any:
            """Keep it."""
            collector.metrics.append(request)
            return metrics_pb2.ExportMetricsServiceResponse()

    server = aio.server()
    add_TraceServiceServicer_to_server(Traces(), server)
    add_MetricsServiceServicer_to_server(Metrics(), server)
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)

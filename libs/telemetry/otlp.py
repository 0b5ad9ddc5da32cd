"""What a collector is sent, made with the official SDK (the extra `otlp`). Imported only where something is to be sent.

Metrics are kept once, in the registry that the page for Prometheus shows, and are sent from there under the same names:
whoever records pays once, whoever is asked by neither pays nothing. Everything else (endpoints, headers, certificates,
sampling, batches) the SDK reads from the standard variables itself.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as Sent
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.samples import Sample

from libs.telemetry.metrics import Metrics
from libs.telemetry.names import Kind, Metric

SCOPE = "pointsman"
GRPC = "grpc"
SPAN_EXPORTERS: Mapping[bool, type[SpanExporter]] = {True: GrpcSpans, False: HttpSpans}
METRIC_EXPORTERS: Mapping[bool, type[MetricExporter]] = {True: GrpcMetrics, False: HttpMetrics}
CUMULATIVE = AggregationTemporality.CUMULATIVE


def resource_of(defaults: Mapping[str, str]) -> Resource:
    """Who sends: what the standard variables say, and these where they say nothing."""
    said = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in defaults.items() if name not in said})


def spans_to_collector(protocol: str, resource: Resource) -> TracerProvider:
    """What makes spans, and sends them in batches from a thread of its own."""
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(SPAN_EXPORTERS[protocol == GRPC]()))
    return provider


class MetricsToCollector:
    """Sends the registry as it stands. Blocking: for a thread."""

    def __init__(self, protocol: str, resource: Resource, metrics: Metrics) -> None:
        self._exporter = METRIC_EXPORTERS[protocol == GRPC]()
        self._resource = resource
        self._metrics = metrics
        self._since_ns = time.time_ns()

    def send(self) -> bool:
        """Whether the collector has taken it; why not is in the log of the exporter."""
        data = data_of(self._metrics, self._resource, self._since_ns, time.time_ns())
        return self._exporter.export(data) is MetricExportResult.SUCCESS

    def close(self) -> None:
        """Send it a last time, and close the connection."""
        self.send()
        self._exporter.shutdown()


def data_of(metrics: Metrics, resource: Resource, since_ns: int, now_ns: int) -> MetricsData:
    """Everything that was recorded since `since_ns`, as OTLP has it: counts since then, not since the last sending."""
    sent = [
        Sent(metric.name, metric.tells, metric.unit, _points(metric, samples, since_ns, now_ns))
        for metric, samples in metrics.read()
    ]
    scope = ScopeMetrics(InstrumentationScope(SCOPE), sent, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _points(metric: Metric, samples: Iterable[Sample], since_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    if metric.kind is Kind.HISTOGRAM:
        return Histogram(_distributions(metric, samples, since_ns, now_ns), CUMULATIVE)
    points = [
        NumberDataPoint(_attributes(metric, sample.labels), since_ns, now_ns, sample.value)
        for sample in samples
        if sample.name == metric.page_name
    ]
    return Sum(points, CUMULATIVE, is_monotonic=True) if metric.kind is Kind.COUNTER else Gauge(points)


def _distributions(
    metric: Metric, samples: Iterable[Sample], since_ns: int, now_ns: int
) -> Sequence[HistogramDataPoint]:
    """One for each set of labels: the page counts up to a limit, OTLP between two."""
    counts: dict[tuple[str, ...], list[int]] = {}
    sums: dict[tuple[str, ...], float] = {}
    for sample in samples:
        key = tuple(sample.labels.get(label, "") for label in metric.page_labels)
        if sample.name.endswith("_bucket"):
            counts.setdefault(key, []).append(int(sample.value))
        elif sample.name.endswith("_sum"):
            sums[key] = sample.value
    return [
        HistogramDataPoint(
            attributes=_attributes(metric, dict(zip(metric.page_labels, key, strict=True))),
            start_time_unix_nano=since_ns,
            time_unix_nano=now_ns,
            count=up_to[-1],
            sum=sums[key],
            bucket_counts=[above - below for below, above in zip([0, *up_to], up_to, strict=False)],
            explicit_bounds=metric.buckets,
            min=None,  # type: ignore[arg-type]  # optional in OTLP, and not kept
            max=None,  # type: ignore[arg-type]
        )
        for key, up_to in counts.items()
    ]


def _attributes(metric: Metric, page: Mapping[str, str]) -> dict[str, str]:
    """The labels by their own names; what is empty is not said."""
    named = zip(metric.labels, metric.page_labels, strict=True)
    return {label: page[page_label] for label, page_label in named if page.get(page_label)}

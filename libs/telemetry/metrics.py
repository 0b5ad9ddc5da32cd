"""The metrics of one process, by the names of `names`, and their page for Prometheus.

    metrics.counter(names.RUNS_CREATED, model="seedance").inc()
    metrics.histogram(names.TICK_SECONDS, context="runs", tick="submit").observe(0.004)

A child (a metric with its label values) may be kept by hot code: asking for it costs a dictionary look-up.
"""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.samples import Sample

from libs.telemetry.names import METRICS, Kind, Metric

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """A registry. One for the process (`PROCESS`); tests make their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._families: dict[str, Counter | Gauge | Histogram] = {}
        self._children: dict[tuple[object, ...], Counter | Gauge | Histogram] = {}
        """By name and labels as a caller spells them; who spells them in another order is given the same child."""

    @property
    def registry(self) -> CollectorRegistry:
        """For what serves the page by itself."""
        return self._registry

    def counter(self, metric: Metric, **labels: str) -> Counter:
        """The counter with these label values."""
        child = self._child(metric, Kind.COUNTER, labels)
        assert isinstance(child, Counter)
        return child

    def gauge(self, metric: Metric, **labels: str) -> Gauge:
        """The gauge with these label values."""
        child = self._child(metric, Kind.GAUGE, labels)
        assert isinstance(child, Gauge)
        return child

    def histogram(self, metric: Metric, **labels: str) -> Histogram:
        """The histogram with these label values."""
        child = self._child(metric, Kind.HISTOGRAM, labels)
        assert isinstance(child, Histogram)
        return child

    def clear(self, metric: Metric) -> None:
        """Forget all label values of a gauge before it is set anew (objects that are no more)."""
        family = self._families.get(metric.name)
        if family is not None and metric.labels:
            family.clear()
            for key in [key for key in self._children if key[0] == metric.name]:
                del self._children[key]

    def read(self) -> Iterator[tuple[Metric, Sequence[Sample]]]:
        """Every metric that was recorded with its samples, as the page has them."""
        of_page = {metric.page_name.removesuffix("_total"): metric for metric in METRICS.values()}
        for family in self._registry.collect():
            yield of_page[family.name], family.samples

    def page(self) -> bytes:
        """Everything in the Prometheus text format, for content type `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _child(self, metric: Metric, kind: Kind, labels: dict[str, str]) -> Counter | Gauge | Histogram:
        key = (metric.name, *labels.items())
        child = self._children.get(key)
        if child is None:
            values = tuple(labels.get(name, "") for name in metric.labels)
            if METRICS.get(metric.name) is not metric or metric.kind is not kind:
                raise ValueError(f"{metric.name} is no {kind} of libs.telemetry.names")
            if set(labels) != set(metric.labels):
                raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
            family = self._family(metric)
            child = family.labels(*values) if metric.labels else family
            self._children[key] = child
        return child

    def _family(self, metric: Metric) -> Counter | Gauge | Histogram:
        family = self._families.get(metric.name)
        if family is None:
            named = metric.page_name, metric.tells, metric.page_labels
            if metric.kind is Kind.COUNTER:
                family = Counter(*named, registry=self._registry)
            elif metric.kind is Kind.GAUGE:
                family = Gauge(*named, registry=self._registry)
            else:
                family = Histogram(*named, registry=self._registry, buckets=metric.buckets)
            self._families[metric.name] = family
        return family


PROCESS = Metrics()

"""What is sent of metrics: the registry of the page, as OTLP has it."""

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.resources import Resource
from prometheus_client.parser import text_string_to_metric_families

from libs.telemetry import names
from libs.telemetry.metrics import Metrics
from libs.telemetry.otlp import data_of

SINCE, NOW = 1_000, 2_000


def sent(metrics: Metrics) -> dict:
    """Everything that is sent, by its name, after it was encoded for the wire."""
    request = encode_metrics(data_of(metrics, Resource.get_empty(), SINCE, NOW))
    ((scope,),) = [resource.scope_metrics for resource in request.resource_metrics]
    return {metric.name: metric for metric in scope.metrics}


def attributes(point) -> dict[str, str]:
    """The attributes of a point."""
    return {item.key: item.value.string_value for item in point.attributes}


def test_counters_and_gauges_are_sent_under_their_names():
    """OPS-5: the same names, labels and figures as on the page, with the unit; since the process began."""
    metrics = Metrics()
    metrics.counter(names.PROVIDER_BYTES, adapter="ark", channel="main").inc(3)
    metrics.gauge(names.HTTP_STREAMS).set(4)
    found = sent(metrics)
    counted, level = found["pointsman_provider_bytes_total"], found["pointsman_http_streams"]
    (point,) = counted.sum.data_points
    assert (counted.unit, counted.description) == ("By", names.PROVIDER_BYTES.tells)
    assert (counted.sum.is_monotonic, counted.sum.aggregation_temporality) == (True, 2)  # 2: cumulative
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (3.0, SINCE, NOW)
    assert attributes(point) == {"adapter": "ark", "channel": "main"}
    assert [item.as_double for item in level.gauge.data_points] == [4.0]


def test_a_histogram_is_sent_with_counts_between_its_limits():
    """OPS-5: buckets, sum and count of each set of labels; limits are those of the list; what is empty is not said."""
    metrics = Metrics()
    told = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}
    for seconds in (0.005, 0.03, 0.03, 100.0):
        metrics.histogram(names.GEN_AI_DURATION, **told, **{"error.type": ""}).observe(seconds)
    metrics.histogram(names.GEN_AI_DURATION, **told, **{"error.type": "rate_limited"}).observe(1.0)
    metric = sent(metrics)["gen_ai.client.operation.duration"]
    well, failed = metric.histogram.data_points
    assert (metric.unit, tuple(well.explicit_bounds)) == ("s", names.GEN_AI_DURATION.buckets)
    assert list(well.bucket_counts) == [1, 0, 2, *[0] * 11, 1]
    assert (well.count, round(well.sum, 3), well.HasField("min")) == (4, 100.065, False)
    assert attributes(well) == told
    assert attributes(failed) == told | {"error.type": "rate_limited"}


def test_what_is_sent_is_what_the_page_shows():
    """OPS-5: a metric of every kind is on both, and nothing is on one alone."""
    metrics = Metrics()
    for metric in names.METRICS.values():
        labels = dict.fromkeys(metric.labels, "x")
        if metric.kind is names.Kind.COUNTER:
            metrics.counter(metric, **labels).inc()
        elif metric.kind is names.Kind.GAUGE:
            metrics.gauge(metric, **labels).set(1)
        else:
            metrics.histogram(metric, **labels).observe(1)
    shown = {family.name for family in text_string_to_metric_families(metrics.page().decode())}
    found = sent(metrics)
    assert found.keys() == names.METRICS.keys()
    assert {names.METRICS[name].page_name.removesuffix("_total") for name in found} <= shown

"""Metrics: the list of names is the law."""

import re

import pytest

from libs.telemetry import names
from libs.telemetry.metrics import CONTENT_TYPE, Metrics
from libs.telemetry.names import Kind, Metric


def test_names_follow_the_conventions():
    """OPS-5: one list of names; counters end in _total, durations in _seconds, and each says what it tells."""
    assert len(names.METRICS) > 20
    for metric in names.METRICS.values():
        ours = re.fullmatch(r"pointsman_[a-z_]+", metric.name)
        assert ours or re.fullmatch(r"gen_ai\.[a-z_.]+", metric.name)
        assert re.fullmatch(r"[a-z_]+", metric.page_name)
        assert metric.page_name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
        assert metric.tells
        assert metric.unit in ("s", "By", "1", "{token}")
        assert (metric.unit == "s") == metric.page_name.endswith(
            "_seconds"
        ) or metric.name == "pointsman_slo_cost_per_usable_second"
    declared = [value for value in vars(names).values() if isinstance(value, Metric)]
    assert len(declared) == len(names.METRICS), "two metrics share a name"
    assert all(re.fullmatch(r"pointsman\.[a-z_]+\.[a-z_]+", span) for span in names.SPANS)
    assert all(tells for tells in (*names.SPANS.values(), *names.ATTRIBUTES.values()))


def test_labels_are_bounded_things():
    """Ids of runs, tasks and requests never become labels: a page would grow without end."""
    labels = {label for metric in names.METRICS.values() for label in metric.labels}
    assert labels.isdisjoint({"run", "run_id", "task", "task_id", "attempt", "request_id", "prompt", "lease", "tenant"})


def test_the_page_is_what_prometheus_reads():
    """OPS-5: counters, gauges and histograms appear under their names with their labels."""
    metrics = Metrics()
    metrics.counter(names.RUNS_CREATED, model="seedance").inc()
    metrics.counter(names.RUNS_CREATED, model="seedance").inc(2)
    metrics.gauge(names.HTTP_STREAMS).set(4)
    metrics.histogram(names.TICK_SECONDS, context="runs", tick="submit").observe(0.2)
    page = metrics.page().decode()
    assert 'pointsman_runs_created_total{model="seedance"} 3.0' in page
    assert "pointsman_http_streams 4.0" in page
    assert 'pointsman_tick_seconds_bucket{context="runs",le="0.25",tick="submit"} 1.0' in page
    assert CONTENT_TYPE.startswith("text/plain")


def test_the_page_spells_names_of_the_conventions_in_its_own_way():
    """OPS-5: a metric of the GenAI conventions stands on the page with underscores and its unit, its labels too."""
    metrics = Metrics()
    told = dict.fromkeys(names.GEN_AI_DURATION.labels, "x")
    metrics.histogram(names.GEN_AI_DURATION, **told).observe(0.3)
    told = dict.fromkeys(names.GEN_AI_TOKEN_USAGE.labels, "x")
    metrics.histogram(names.GEN_AI_TOKEN_USAGE, **told).observe(17)
    page = metrics.page().decode()
    assert 'gen_ai_client_operation_duration_seconds_bucket{error_type="x",gen_ai_operation_name="x"' in page
    assert 'gen_ai_client_token_usage_bucket{gen_ai_operation_name="x"' in page


def test_a_name_that_is_not_listed_cannot_be_recorded():
    """OPS-5: neither an unlisted name, nor a listed one as another kind, nor with other labels."""
    metrics = Metrics()
    with pytest.raises(ValueError, match="no counter of"):
        metrics.counter(Metric(Kind.COUNTER, "pointsman_other_total", "x"))
    with pytest.raises(ValueError, match="no gauge of"):
        metrics.gauge(names.RUNS_CREATED, model="a")
    with pytest.raises(ValueError, match="has the labels"):
        metrics.counter(names.RUNS_CREATED, tenant="a")
    with pytest.raises(ValueError, match="has the labels"):
        metrics.counter(names.RUNS_CREATED)


def test_a_gauge_of_objects_can_be_told_anew():
    """An object that is no more leaves the page."""
    metrics = Metrics()
    metrics.gauge(names.CAPACITY_IN_USE, object_kind="supply", object="old").set(1)
    metrics.clear(names.CAPACITY_IN_USE)
    metrics.gauge(names.CAPACITY_IN_USE, object_kind="supply", object="new").set(2)
    page = metrics.page().decode()
    assert "old" not in page
    assert 'object="new"' in page

"""What the standard variables of OpenTelemetry mean here, and that nothing is loaded where they are not set."""

import subprocess
import sys

import pytest

from libs.host.exporting import Silence, exporting, signals
from libs.host.placement import START_ORDER

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
HTTP = "http/protobuf"
LOADED = """
import sys
from importlib import import_module
from libs.host.exporting import exporting
from libs.host.hosting import Host
for context in {contexts!r}:
    import_module(f"services.{{context}}.compose")
exporting({env!r}, {contexts!r})
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))))
"""


@pytest.mark.parametrize(
    "env, traces, metrics",
    [
        ({}, "", ""),
        (ENDPOINT, HTTP, HTTP),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, "", ""),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, "", HTTP),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "prometheus"}, HTTP, ""),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc", "grpc"),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}, HTTP, "grpc"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, HTTP, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, HTTP, ""),
    ],
)
def test_each_signal_is_sent_as_the_variables_say(env: dict[str, str], traces: str, metrics: str):
    """OPS-5: an endpoint or an exporter turns a signal on; the specification's default is http/protobuf."""
    wanted = signals(env)
    assert (wanted.traces, wanted.metrics, wanted.complaints) == (traces, metrics, ())


@pytest.mark.parametrize(
    "wrong, says, metrics",
    [
        ({"OTEL_METRICS_EXPORTER": "statsd"}, "OTEL_METRICS_EXPORTER is 'statsd'; expected one of none, otlp", ""),
        ({"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}, "_METRICS_PROTOCOL is 'http/json'; expected http/", ""),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "1s"}, "OTEL_METRIC_EXPORT_INTERVAL is '1s'; expected whole milli", HTTP),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4317"}, "http://c:4317 looks like a port for gRPC", HTTP),
    ],
)
def test_a_wrong_variable_costs_its_signal_and_never_the_work(wrong: dict[str, str], says: str, metrics: str):
    """OPS-5: the complaint names the variable and the remedy; the other signal is sent."""
    wanted = signals(ENDPOINT | wrong)
    assert (wanted.traces, wanted.metrics) == (HTTP, metrics)
    (complaint,) = wanted.complaints
    assert says in complaint


def test_the_interval_is_in_milliseconds():
    """As the specification says; a minute without."""
    assert signals(ENDPOINT).interval_s == 60.0
    assert signals(ENDPOINT | {"OTEL_METRIC_EXPORT_INTERVAL": "1500"}).interval_s == 1.5


def test_who_sends_nothing_makes_no_spans():
    """OPS-5: without the variables a process has no tracer and nothing to send."""
    silent = exporting({}, START_ORDER)
    assert isinstance(silent, Silence)
    assert (silent.tracer, silent.interval_s) == (None, None)


@pytest.mark.parametrize("env, loads", [({}, False), (ENDPOINT, True)])
def test_the_sdk_is_loaded_only_where_something_is_sent(env: dict[str, str], loads: bool):
    """OPS-5: a process with every context imports nothing of the SDK unless an endpoint is set."""
    program = LOADED.format(contexts=START_ORDER, env=env)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip() != "[]") is loads, done.stdout + done.stderr

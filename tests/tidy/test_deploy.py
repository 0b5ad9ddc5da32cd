"""OPS-3: what deploys the product asks for nothing that the product does not have. Nothing is built or installed."""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from libs.host.hosting import STOP_MARGIN_S
from libs.host.placement import START_ORDER
from libs.telemetry.names import METRICS, Kind, Metric
from services.edge.settings import Settings as EdgeSettings
from services.routing.settings import PREFIX
from services.routing.settings import Settings as RoutingSettings
from tests.support import charts
from tests.tidy import tree

CHART = tree.ROOT / "deploy/helm/pointsman"
EVERYTHING: Mapping[str, Any] = {
    "autoscaling": {"enabled": True},
    "podMonitor": {"enabled": True},
    "postgres": {"enabled": True},
    "environment": {"POINTSMAN_LOG_LEVEL": "info"},
}
"""Values that turn on all that the chart leaves off."""
OURS = re.compile(r"(?:POINTSMAN|PEER|LISTEN|ROUTING|STUDIO|OTEL|AWS)_[A-Z0-9_]+")
QUOTED = re.compile(r'"([A-Z][A-Z0-9_]+)"')
OUTSIDE = ("OTEL_", "AWS_")
"""Read by the SDKs of OpenTelemetry and of buckets, by their own documents."""
METRIC = re.compile(r"\b(?:pointsman|gen_ai)_[a-z0-9_]+")


def file(path: str) -> str:
    """One file below `deploy`."""
    return (tree.ROOT / "deploy" / path).read_text(encoding="utf-8")


@functools.cache
def read_by_the_product() -> frozenset[str]:
    """Every name of a variable that stands alone as a text in the code, those that contexts make, keys of accounts."""
    found = {f"{kind}_{name.upper()}" for kind in ("PEER", "LISTEN") for name in START_ORDER}
    for path in tree.python(*tree.PRODUCT):
        found |= {name for name in QUOTED.findall(tree.text(path) or "") if OURS.fullmatch(name)}
    catalogue = yaml.safe_load(file("catalogs/studio.yaml"))
    found |= {channel["secret"].removeprefix("env:") for channel in catalogue["channels"]}
    return frozenset(found)


def known_variable(name: str) -> bool:
    """Whether anything reads it. A setting of routing is checked by its field."""
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX).lower() in RoutingSettings.__dataclass_fields__
    return name.startswith(OUTSIDE) or name in read_by_the_product()


def metric_of(name: str) -> Metric | None:
    """The metric whose page shows a series of that name, or None."""
    for metric in METRICS.values():
        parts = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        if name in {metric.page_name + part for part in parts}:
            return metric
    return None


def labels_of(names: Iterable[str]) -> set[str]:
    """The labels that series of these names bear."""
    return {"le"}.union(*(metric.page_labels for name in names if (metric := metric_of(name)) is not None))


def rendered(values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The objects of the chart by their kind."""
    return {item["kind"]: item for item in charts.rendered(CHART, values or {}, release="pm")}


def pod() -> dict[str, Any]:
    """The one pod of the chart."""
    spec: dict[str, Any] = rendered(EVERYTHING)["Deployment"]["spec"]["template"]["spec"]
    return spec


def docker() -> list[list[str]]:
    """The instructions of the Dockerfile, lines that go on put together, remarks left out."""
    lines = "\n".join(line for line in file("Dockerfile").splitlines() if not line.startswith("#"))
    return [line.split(maxsplit=1) for line in lines.replace("\\\n", " ").splitlines() if line.strip()]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression for Prometheus, with the place where it stands."""
    for group in yaml.safe_load(file("prometheus/alerts.yaml"))["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads(file("grafana/pointsman.json"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for rule in yaml.safe_load(file("prometheus/adapter.yaml"))["rules"]["external"]:
        yield "adapter", rule["metricsQuery"]
        yield "adapter", rule["seriesQuery"]


def test_names_that_nobody_has_are_refused():
    """The rules fail on a variable that nothing reads, and on a histogram's name without its part."""
    assert known_variable("POINTSMAN_HTTP")
    assert known_variable("ROUTING_POOL_SIZE")
    assert not known_variable("POINTSMAN_HTTP_PORT")
    assert not known_variable("ROUTING_POOL")
    assert metric_of("pointsman_task_wait_seconds_bucket") is not None
    assert metric_of("pointsman_task_wait_seconds") is None
    assert metric_of("pointsman_queue_age_seconds") is None


def test_rules_and_dashboard_ask_for_metrics_that_there_are():
    """OPS-3: a rule over a name that nothing records never fires, and nobody notices."""
    asked = {(place, name) for place, text in expressions() for name in METRIC.findall(text)}
    assert sorted(item for item in asked if metric_of(item[1]) is None) == []
    assert len({place for place, _ in asked}) > 30


def test_rules_and_panels_go_by_labels_that_the_metric_has():
    """OPS-3: by a label that a metric lacks everything is one series, or none."""
    wrong = []
    for place, text in expressions():
        for name, inside in re.findall(r"\b(pointsman_[a-z0-9_]+)\{([^}]*)\}", text):
            wrong += [(place, label) for label in set(re.findall(r"(\w+)\s*=", inside)) - labels_of([name])]
        for labels in re.findall(r"by \(([^)]*)\)", text):
            wrong += [(place, label) for label in set(labels.split(", ")) - labels_of(METRIC.findall(text))]
    assert wrong == []


def test_the_autoscaler_goes_by_the_age_of_the_queue():
    """OPS-3: it names the figure that the adapter shows it, which is that of a metric."""
    (rule,) = yaml.safe_load(file("prometheus/adapter.yaml"))["rules"]["external"]
    (scaled,) = rendered(EVERYTHING)["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert scaled["external"]["metric"]["name"] == rule["name"]["as"]
    assert rule["name"]["as"] in METRICS
    assert "replicas" not in rendered(EVERYTHING)["Deployment"]["spec"]
    assert "HorizontalPodAutoscaler" not in rendered()


def test_every_variable_that_is_set_is_read():
    """OPS-3: a setting under a wrong name is silently none."""
    told = {name for word, rest in docker() if word == "ENV" for name in OURS.findall(rest)}
    services = yaml.safe_load(file("compose.yaml"))["services"]
    told |= set(services["pointsman"]["environment"])
    told |= {item["name"] for item in pod()["containers"][0]["env"]}
    told |= set(OURS.findall(file("helm/pointsman/values.yaml")))
    assert sorted(name for name in told if not known_variable(name)) == []
    assert {"POINTSMAN_HTTP", "POINTSMAN_DATABASE_URL", "POINTSMAN_REDIS_URL", "POINTSMAN_BLOBS"} <= told


def test_no_secret_has_a_value():
    """OPS-3, AUTH-1: who deploys gives the keys; there is none that everybody knows."""
    services = yaml.safe_load(file("compose.yaml"))["services"]
    secrets = {"POINTSMAN_ADMIN_KEY", "POINTSMAN_SECRETS_KEY", "POSTGRES_PASSWORD"}
    given = services["pointsman"]["environment"] | services["postgres"]["environment"]
    assert [name for name in secrets if not given[name].startswith("${" + name + ":?")] == []
    plain = {item["name"] for item in pod()["containers"][0]["env"] if "value" in item}
    assert plain & (secrets | {"POINTSMAN_LINK_KEY", "POINTSMAN_DATABASE_URL"}) == set()
    assert [
        rest for word, rest in docker() if word in ("ENV", "ARG") and re.search(r"(?:KEY|PASSWORD|SECRET)", rest)
    ] == []


def test_ports_and_paths_are_those_of_the_product():
    """OPS-3: probes look at routes that there are, and at the ports that the image serves."""
    (env,) = (rest for word, rest in docker() if word == "ENV" and "POINTSMAN_HTTP" in rest)
    ports = {name: int(port) for name, port in re.findall(r"POINTSMAN_(HTTP|GRPC)=0\.0\.0\.0:(\d+)", env)}
    assert EdgeSettings.from_env({"POINTSMAN_DATABASE_URL": "memory:"}).http_port == ports["HTTP"]
    (exposed,) = (rest.split() for word, rest in docker() if word == "EXPOSE")
    assert [int(port) for port in exposed] == [ports["HTTP"], ports["GRPC"]]
    container = pod()["containers"][0]
    assert {item["name"].upper(): item["containerPort"] for item in container["ports"]} == ports
    assert container["startupProbe"]["grpc"]["port"] == ports["GRPC"]
    service = rendered()["Service"]["spec"]["ports"]
    assert {item["targetPort"].upper(): item["port"] for item in service} == ports
    paths = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness")}
    paths |= {item["path"] for item in rendered(EVERYTHING)["PodMonitor"]["spec"]["podMetricsEndpoints"]}
    assert paths == {"/readyz", "/healthz", "/metrics"}
    routes = tree.text("services/edge/routes/probes.py") or ""
    assert [path for path in paths if f'"GET", "{path}"' not in routes] == []
    (check,) = (rest for word, rest in docker() if word == "HEALTHCHECK")
    assert f"http://127.0.0.1:{ports['HTTP']}/healthz" in check


def test_nobody_is_root():
    """OPS-3: not in the image, not in the pod, and both are the same user."""
    users = [rest for word, rest in docker() if word == "USER"]
    assert users == ["10001:10001"]
    security = pod()["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"], security["runAsGroup"]) == (True, 10001, 10001)
    assert docker()[-1] == ["ENTRYPOINT", '["python", "-m", "services"]']


def test_a_pod_has_the_time_that_a_stop_takes():
    """OPS-3, OPS-4: balancers notice before ports close, and no pod is killed while it finishes what is in hand."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    drain_s, lag_s = float(values["drain"]["seconds"]), float(values["drain"]["lagSeconds"])
    looks = pod()["containers"][0]["readinessProbe"]
    assert looks["periodSeconds"] * looks["failureThreshold"] < lag_s
    # The sockets, then the contexts, each with a drain of its own.
    assert pod()["terminationGracePeriodSeconds"] >= lag_s + 2 * drain_s + STOP_MARGIN_S


def test_the_image_has_what_the_package_is_made_of():
    """OPS-3: the Dockerfile copies each folder that the wheel includes, by the frozen lock and the pinned uv."""
    copied = {word for name, rest in docker() if name == "COPY" for word in rest.split()[:-1]}
    assert {*tree.PRODUCT, "LICENSE", "pyproject.toml", "uv.lock"} <= copied
    sent = {line.removeprefix("!") for line in file("Dockerfile.dockerignore").splitlines() if line.startswith("!")}
    assert {word for word in copied if not word.startswith(("-", "/"))} == sent
    syncs = [rest for word, rest in docker() if word == "RUN" and "uv sync" in rest]
    assert len(syncs) == 2
    assert all("--frozen" in rest and "--no-dev" in rest for rest in syncs)
    (pinned,) = re.findall(r'UV_VERSION = "(.+)"', tree.text("tools/setup.py") or "")
    assert f"uv=={pinned}\n" in file("Dockerfile")


def test_the_database_of_the_chart_is_the_one_that_pods_ask():
    """OPS-3: CloudNativePG puts the address into a Secret by the name of its cluster."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    cluster = rendered(EVERYTHING)["Cluster"]
    assert values["secrets"]["database"] == f"{cluster['metadata']['name']}-app"
    budget = rendered()["PodDisruptionBudget"]["spec"]
    assert budget["selector"]["matchLabels"] == rendered()["Deployment"]["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("line", ["a: {{ .Values.absent }}", 'a: {{ include "x" . }}', "{{- if .Values.a }}\na: 1"])
def test_a_template_beyond_the_little_that_is_read_here_is_refused(line: str):
    """The reader of templates fails on a value that is not there, on what it does not know, and on an open block."""
    with pytest.raises(charts.ChartError):
        charts.filled(line, {"Values": {"a": True}})

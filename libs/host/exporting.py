"""Whether a process sends traces and metrics to an OpenTelemetry collector: the standard variables, read at its start.

| variable | means | absent |
|---|---|---|
| OTEL_EXPORTER_OTLP_ENDPOINT | the collector; `…_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT`: of one | nothing is sent |
| OTEL_EXPORTER_OTLP_PROTOCOL | `http/protobuf` or `grpc`; `…_TRACES_PROTOCOL`, `…_METRICS_PROTOCOL` | `http/protobuf` |
| OTEL_TRACES_EXPORTER | `otlp` or `none` | `otlp`, where there is an endpoint |
| OTEL_METRICS_EXPORTER | the same; `prometheus`: the page alone | `otlp`, where there is an endpoint |
| OTEL_METRIC_EXPORT_INTERVAL | milliseconds between two sendings of metrics | 60000 |
| OTEL_SERVICE_NAME | who sends; OTEL_RESOURCE_ATTRIBUTES too | `pointsman`; `pointsman-<context>` where there is one |
| OTEL_SDK_DISABLED | `true`: nothing is sent | |

The SDK reads headers, timeouts, certificates, sampling (OTEL_TRACES_SAMPLER) and batches (OTEL_BSP_…) itself.

Laws of this file:
- nothing of the SDK is imported unless something is to be sent;
- what is wrong with these variables is told in the log, with the remedy, and costs the signal: never the work.
"""

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry.trace import Tracer

from libs.telemetry.metrics import PROCESS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from libs.telemetry.otlp import MetricsToCollector

DISABLED = "OTEL_SDK_DISABLED"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
PROTOCOLS = ("http/protobuf", "grpc")
OTHERS = {"TRACES": frozenset({"none"}), "METRICS": frozenset({"none", "prometheus"})}
"""Exporters of a signal that are none of ours: with one of these nothing is sent."""
DEFAULT_INTERVAL_S = 60.0
GRPC_PORT = ":4317"

log = logging.getLogger(__name__)


class Exporting(Protocol):
    """What a process sends. `tracer` makes its spans, None: it makes none. `interval_s`: how often `send` is called,
    None: never."""

    @property
    def tracer(self) -> Tracer | None: ...

    @property
    def interval_s(self) -> float | None: ...

    async def send(self) -> None:
        """Send the metrics as they stand."""
        ...

    async def stop(self) -> None:
        """Send what is left."""
        ...


Export = Callable[[Mapping[str, str], Sequence[str]], Exporting]
"""Reads (environment, hosted contexts) and begins."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What is to be sent, and how: the protocol of each, "" = not at all. `interval_s` between two sendings."""

    traces: str = ""
    metrics: str = ""
    interval_s: float = DEFAULT_INTERVAL_S
    complaints: tuple[str, ...] = ()
    """What is wrong, with the remedy."""


def signals(env: Mapping[str, str]) -> Signals:
    """Read the variables."""
    if _said(env, DISABLED).lower() == "true":
        return Signals()
    complaints: list[str] = []
    traces, metrics = (_protocol(env, signal, complaints) for signal in ("TRACES", "METRICS"))
    return Signals(traces, metrics, _interval_s(env, complaints), tuple(complaints))


def _protocol(env: Mapping[str, str], signal: str, complaints: list[str]) -> str:
    """How that signal is sent; "" where it is not."""
    variable = f"OTEL_{signal}_EXPORTER"
    exporter = _said(env, variable).lower()
    endpoint = _said(env, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or _said(env, ENDPOINT)
    if exporter in OTHERS[signal] or not (endpoint or exporter):
        return ""
    if exporter not in ("", "otlp"):
        known = ", ".join(sorted(OTHERS[signal] | {"otlp"}))
        complaints.append(f"{variable} is {exporter!r}; expected one of {known}. Nothing is sent of it")
        return ""
    own = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"
    variable = own if _said(env, own) else PROTOCOL
    protocol = _said(env, variable) or PROTOCOLS[0]
    if protocol not in PROTOCOLS:
        complaints.append(f"{variable} is {protocol!r}; expected {' or '.join(PROTOCOLS)}. Nothing is sent of it")
        return ""
    if protocol == PROTOCOLS[0] and endpoint.rstrip("/").endswith(GRPC_PORT):
        complaints.append(f"{endpoint} looks like a port for gRPC; if it is one, set {PROTOCOL}=grpc")
    return protocol


def _interval_s(env: Mapping[str, str], complaints: list[str]) -> float:
    text = _said(env, INTERVAL)
    if not text:
        return DEFAULT_INTERVAL_S
    if text.isdecimal() and int(text):
        return int(text) / 1000
    complaints.append(f"{INTERVAL} is {text!r}; expected whole milliseconds, for example 60000, which it is taken for")
    return DEFAULT_INTERVAL_S


def _said(env: Mapping[str, str], variable: str) -> str:
    return env.get(variable, "").strip()


class Silence:
    """`Exporting` of a process that sends nothing."""

    tracer: Tracer | None = None
    interval_s: float | None = None

    async def send(self) -> None:
        """Nothing."""

    async def stop(self) -> None:
        """Nothing."""


class ToCollector:
    """`Exporting` over OTLP."""

    def __init__(self, wanted: Signals, contexts: Sequence[str]) -> None:
        from libs.telemetry import otlp

        resource = otlp.resource_of(_names(contexts))
        self._spans: TracerProvider | None = None
        self._metrics: MetricsToCollector | None = None
        self.tracer: Tracer | None = None
        self.interval_s: float | None = None
        if wanted.traces:
            self._spans = otlp.spans_to_collector(wanted.traces, resource)
            self.tracer = self._spans.get_tracer(otlp.SCOPE, version("pointsman"))
        if wanted.metrics:
            self._metrics = otlp.MetricsToCollector(wanted.metrics, resource, PROCESS)
            self.interval_s = wanted.interval_s

    async def send(self) -> None:
        """See `Exporting`."""
        if self._metrics is not None:
            await aside(self._metrics.send)

    async def stop(self) -> None:
        """See `Exporting`. A collector that does not answer is given up by the SDK's limits, or with the process."""
        ends = [part for part in (self._spans and self._spans.shutdown, self._metrics and self._metrics.close) if part]
        await asyncio.gather(*(aside(end) for end in ends))


def exporting(env: Mapping[str, str], contexts: Sequence[str]) -> Exporting:
    """Begin as the environment says; a complaint is a warning, and its signal is not sent."""
    wanted = signals(env)
    for complaint in wanted.complaints:
        log.warning(complaint)
    if not (wanted.traces or wanted.metrics):
        return Silence()
    try:
        return ToCollector(wanted, contexts)
    except ImportError as error:
        log.warning("nothing is sent to %s: %s; install the extra: pip install 'pointsman[otlp]'", ENDPOINT, error)
    except Exception:
        log.warning("nothing is sent to %s", ENDPOINT, exc_info=True)
    return Silence()


def _names(contexts: Sequence[str]) -> dict[str, str]:
    """Who sends, where the variables do not say."""
    own = f"-{contexts[0]}" if len(contexts) == 1 else ""
    return {
        "service.name": f"pointsman{own}",
        "service.namespace": "pointsman",
        "service.version": version("pointsman"),
        "service.instance.id": str(uuid.uuid4()),
    }


async def aside(work: Callable[[], Any]) -> None:
    """Blocking work in a thread that keeps no process from ending: a collector that is away is nobody's to wait for."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, done, error)

    threading.Thread(target=run, name="export", daemon=True).start()
    await done


def _settle(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)

"""What a trace and the meters tell of one call of a model, by the GenAI conventions (OPS-5): figures, never a word.

The provider is told nothing of it: our trace ends here, because whom it would be passed on to is not ours.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from opentelemetry import trace

from libs.kernel.clock import Clock
from libs.telemetry import metrics, names, spans
from libs.telemetry.generative import operation_of, output_type_of, provider_of
from services.provider_adapter.app.conversation import Line
from services.provider_adapter.domain.calls import Report
from services.provider_adapter.domain.job import Job

LEFT = "cancelled"
"""The code of what its caller did not wait for."""


class Operation:
    """From the request to the end of the answer: `with Operation(line, job, clock) as operation`.

    A `streamed` one is the body of a generator, which others run piece by piece: its span is nobody's current one.
    Calls are metered; of a job only its submission would be, so its own time is told by `pointsman_attempt_seconds`.
    """

    __slots__ = ("_begun_s", "_clock", "_first_s", "_job", "_line", "_report", "_span", "_streamed", "_within")

    def __init__(self, line: Line, job: Job, clock: Clock, *, streamed: bool = False) -> None:
        self._line = line
        self._job = job
        self._clock = clock
        self._streamed = streamed
        self._report: Report | None = None
        self._first_s: float | None = None
        self._span: trace.Span | None = None
        self._within: spans.within | None = None

    def __enter__(self) -> Self:
        self._begun_s = self._clock.monotonic()
        tracer = spans.PROCESS.tracer
        if tracer is not None and spans.in_trace():
            named = f"{operation_of(self._job.kind)} {self._job.model}"
            self._span = tracer.start_span(named, kind=trace.SpanKind.CLIENT)
            spans.tell(self._span, facts_of(self._line, self._job) | {names.GEN_AI_STREAM: self._streamed or None})
            if not self._streamed:
                self._within = spans.within(self._span)
                self._within.__enter__()
        return self

    def answered(self, report: Report, first_s: float | None = None) -> None:
        """It ended well; `first_s` seconds until the first piece of a stream."""
        self._report, self._first_s = report, first_s

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        code = "" if error is None else spans.code_of(error)
        if code == LEFT and self._report is not None:
            code = ""  # who has heard all of a stream need not wait for its end
        if self._job.kind in self._line.adapter.manifest.synchronous_kinds:
            self._meter(code)
        if self._span is not None:
            self._tell(self._span, code)
            if self._within is not None:
                self._within.__exit__(None, None, None)
            self._span.end()

    def _meter(self, code: str) -> None:
        whose = operation_of(self._job.kind), provider_of(self._line.endpoint.adapter), self._job.model
        _duration(*whose, code)(self._clock.monotonic() - self._begun_s)
        if self._report is None:
            return
        usage = self._report.usage
        if usage.input_tokens is not None:
            _tokens(*whose, "input")(usage.input_tokens)
        if usage.output_tokens is not None:
            _tokens(*whose, "output")(usage.output_tokens)
        if self._first_s is not None:
            _first_chunk(*whose)(self._first_s)

    def _tell(self, span: trace.Span, code: str) -> None:
        report = self._report
        if report is not None:
            usage = report.usage
            spans.tell(
                span,
                {
                    names.GEN_AI_RESPONSE_MODEL: report.model or None,
                    names.GEN_AI_RESPONSE_ID: report.provider_request_id or None,
                    names.GEN_AI_FINISH: (report.finish_reason,) if report.finish_reason else None,
                    names.GEN_AI_INPUT_TOKENS: usage.input_tokens,
                    names.GEN_AI_CACHED_TOKENS: usage.cached_input_tokens,
                    names.GEN_AI_OUTPUT_TOKENS: usage.output_tokens,
                    names.GEN_AI_REASONING_TOKENS: usage.reasoning_tokens,
                    names.GEN_AI_FIRST_CHUNK: self._first_s,
                },
            )
        if code:
            spans.fail(span, code)


def facts_of(line: Line, job: Job) -> dict[str, Any]:
    """What is known of an exchange before it: who is asked for what."""
    host, port = _place(line.endpoint.base_url)
    return {
        names.GEN_AI_OPERATION: operation_of(job.kind),
        names.GEN_AI_PROVIDER: provider_of(line.endpoint.adapter),
        names.GEN_AI_REQUEST_MODEL: job.model,
        names.GEN_AI_OUTPUT_TYPE: output_type_of(job.kind),
        names.SERVER_ADDRESS: host,
        names.SERVER_PORT: port,
        names.CHANNEL: line.endpoint.channel_id,
        names.ATTEMPT_ID: job.attempt_id,
    }


@lru_cache(maxsize=256)
def _place(base_url: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(base_url)
        return parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None, None


Observe = Callable[[float], None]


def _labels(operation: str, provider: str, model: str) -> dict[str, str]:
    return {
        names.GEN_AI_OPERATION: operation,
        names.GEN_AI_PROVIDER: provider,
        names.GEN_AI_REQUEST_MODEL: model,
    }


@cache
def _duration(operation: str, provider: str, model: str, code: str) -> Observe:
    told = _labels(operation, provider, model) | {names.ERROR_TYPE: code}
    return metrics.PROCESS.histogram(names.GEN_AI_DURATION, **told).observe


@cache
def _tokens(operation: str, provider: str, model: str, sort: str) -> Observe:
    told = _labels(operation, provider, model) | {names.GEN_AI_TOKEN_TYPE: sort}
    return metrics.PROCESS.histogram(names.GEN_AI_TOKEN_USAGE, **told).observe


@cache
def _first_chunk(operation: str, provider: str, model: str) -> Observe:
    told = _labels(operation, provider, model)
    return metrics.PROCESS.histogram(names.GEN_AI_TIME_TO_FIRST_CHUNK, **told).observe

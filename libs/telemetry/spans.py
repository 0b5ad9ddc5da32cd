"""Spans: what a trace tells of the work in hand, by the names of `names`.

    with span(names.SPAN_SELECT, {names.MODEL: "talk"}): ...
    with continued(task.traceparent, names.SPAN_TASK_ADVANCE, {names.TASK_ID: task.id}): ...
    annotate({names.GEN_AI_OUTPUT_TOKENS: 12})

Laws of this file:
- without a tracer no span is made, and the trace that came in is carried on as it is, so that one which begins and ends
  elsewhere is not cut here. Nothing of the SDK is imported here or anywhere but where a process says that it exports;
- a trace begins at a door, or where durable work is taken up that belongs to none. Background rounds begin none: what
  they ask of others stands in no trace;
- a failure is told by its code, never by its words, and a name that is not in `names` is refused (ERR-4).
"""

import asyncio
from collections.abc import Mapping
from contextvars import Token
from types import TracebackType
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from libs.telemetry import names
from libs.telemetry.correlation import carry_traceparent, current_traceparent

Kind = trace.SpanKind
Facts = Mapping[str, Any]
W3C = TraceContextTextMapPropagator()
"""The one form in which a trace is named, on the wire and where it is kept. Baggage is not passed on: what callers put
into it they may not want everybody to read."""
UNNAMED = "internal"
"""The code of what was raised without one."""


class Tracing:
    """Whose spans this process makes. One for the process (`PROCESS`), read when a request comes, a server or a channel
    is made."""

    __slots__ = ("tracer",)

    def __init__(self) -> None:
        self.tracer: trace.Tracer | None = None

    def use(self, tracer: trace.Tracer | None) -> None:
        """Make spans with it from now on; None: make none."""
        self.tracer = tracer


PROCESS = Tracing()


def installed_tracer() -> trace.Tracer | None:
    """The tracer of the process; where it has none, that of an SDK which somebody else has installed; else None."""
    if PROCESS.tracer is not None:
        return PROCESS.tracer
    if isinstance(trace.get_tracer_provider(), (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    return trace.get_tracer("pointsman")


def here() -> str:
    """The W3C trace context of the work in hand, to be kept with what is done later; "" outside a trace."""
    return current_traceparent()


def annotate(facts: Facts) -> None:
    """Put facts on the current span; None = not known. ValueError for a name that is not in the list."""
    if PROCESS.tracer is not None:
        tell(trace.get_current_span(), facts)


def tell(span: trace.Span, facts: Facts) -> None:
    """Put facts on a span; None = not known. ValueError for a name that is not in the list."""
    if span.is_recording():
        for name, value in facts.items():
            if name not in names.ATTRIBUTES:
                raise ValueError(f"{name} is no attribute of libs.telemetry.names")
            if value is not None:
                span.set_attribute(name, value)


def code_of(error: BaseException) -> str:
    """The code by which a failure is told."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    code = getattr(error, "code", "")
    return code if isinstance(code, str) and code else UNNAMED


def fail(span: trace.Span, code: str) -> None:
    """Mark it as failed with that code."""
    span.set_attribute(names.ERROR_TYPE, code)
    span.set_status(trace.StatusCode.ERROR, code)


def spelt(span: trace.Span) -> str:
    """Its W3C trace context, version 00."""
    at = span.get_span_context()
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{at.trace_flags:02x}" if at.is_valid else ""


def in_trace() -> bool:
    """Whether the work in hand belongs to a trace, sampled or not."""
    return trace.get_current_span().get_span_context().is_valid


class within:  # read as a statement: "with within(begun)"
    """A span as the current one of the block, which does not end it. The same task leaves the block as entered it."""

    __slots__ = ("_before", "_parent", "_span", "_token")

    def __init__(self, begun: trace.Span, parent: otel_context.Context | None = None) -> None:
        self._span = begun
        self._parent = parent

    def __enter__(self) -> None:
        self._before = current_traceparent()
        self._token = otel_context.attach(trace.set_span_in_context(self._span, self._parent))
        carry_traceparent(spelt(self._span))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        otel_context.detach(self._token)
        carry_traceparent(self._before)


class span:  # read as a statement: "with span(names.SPAN_SELECT)"
    """A span around the block, below the current one. Nothing without a tracer or outside a trace."""

    __slots__ = ("_facts", "_kind", "_name", "_span", "_within")

    def __init__(self, name: str, facts: Facts | None = None, kind: trace.SpanKind = Kind.INTERNAL) -> None:
        self._name = name
        self._facts = facts
        self._kind = kind
        self._span: trace.Span | None = None

    def __enter__(self) -> None:
        tracer = PROCESS.tracer
        if tracer is None or not in_trace():
            return
        self._begin(tracer, None)

    def _begin(self, tracer: trace.Tracer, parent: otel_context.Context | None) -> None:
        self._span = begun = tracer.start_span(self._name, parent, self._kind)
        if self._facts:
            tell(begun, self._facts)
        self._within = within(begun, parent)
        self._within.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        ended = self._span
        if ended is None:
            return
        if error is not None:
            fail(ended, code_of(error))
        ended.end()
        self._within.__exit__(kind, error, traceback)


class continued(span):  # read as a statement: "with continued(task.traceparent, …)"
    """A span in the trace that was kept with the work, or the first of a new one. Without a tracer the kept trace is
    carried by what the block does."""

    __slots__ = ("_before", "_traceparent")

    def __init__(self, traceparent: str, name: str, facts: Facts) -> None:
        super().__init__(name, facts, Kind.INTERNAL)
        self._traceparent = traceparent

    def __enter__(self) -> None:
        tracer = PROCESS.tracer
        if tracer is not None:
            self._begin(tracer, _kept(self._traceparent))
        else:
            self._before = current_traceparent()
            carry_traceparent(self._traceparent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._span is None:
            carry_traceparent(self._before)
        super().__exit__(kind, error, traceback)


class carried:  # read as a statement: "with carried(run.traceparent)"
    """The kept trace for what the block does, without a span of its own; "" = in none. For what mostly does nothing,
    and for what is done on behalf of somebody else than whoever's task it is."""

    __slots__ = ("_before", "_token", "_traceparent")

    def __init__(self, traceparent: str) -> None:
        self._traceparent = traceparent

    def __enter__(self) -> None:
        self._before = current_traceparent()
        self._token: Token[otel_context.Context] | None = None
        if PROCESS.tracer is not None:
            self._token = otel_context.attach(_kept(self._traceparent))
        carry_traceparent(self._traceparent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
        carry_traceparent(self._before)


def at_door(tracer: trace.Tracer, name: str, facts: Facts, parent: otel_context.Context) -> trace.Span:
    """The SERVER span of what has come in, below what it came with. It is the running task's from now on, and never
    left: the context ends with the task. Whoever called this ends the span."""
    begun = tracer.start_span(name, parent, Kind.SERVER)
    tell(begun, facts)
    within(begun, parent).__enter__()
    return begun


def came_with(carrier: Mapping[str, str]) -> otel_context.Context:
    """The trace that metadata or headers name, by their lower-case keys; an empty context where they name none."""
    return W3C.extract(carrier, otel_context.Context())


def names_a_trace(parent: otel_context.Context) -> bool:
    """Whether there is a trace in it."""
    return trace.get_current_span(parent).get_span_context().is_valid


def _kept(traceparent: str) -> otel_context.Context:
    return came_with({"traceparent": traceparent} if traceparent else {})

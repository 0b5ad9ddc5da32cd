"""Spans of a process kept in memory, through the same port through which a process sends them.

with recorded() as spans: …                                  # spans that code under test makes
Host(…, export=lambda env, contexts: spans)                  # a whole process
"""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from libs.telemetry.spans import PROCESS


class Recorded:
    """`libs.host.exporting.Exporting` that sends nothing and keeps every span that has ended."""

    interval_s: float | None = None

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracer: Tracer | None = provider.get_tracer("tests")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """In the order in which they ended."""
        return self._kept.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        """The only span of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def of_trace(self, trace_id: str) -> list[ReadableSpan]:
        """Those of one trace."""
        return [span for span in self.spans if f"{span.context.trace_id:032x}" == trace_id]

    async def send(self) -> None:
        """Nothing."""

    async def stop(self) -> None:
        """Nothing: what was kept is still to be looked at."""


@contextmanager
def recorded() -> Iterator[Recorded]:
    """The spans that this process makes within the block."""
    kept = Recorded()
    PROCESS.use(kept.tracer)
    try:
        yield kept
    finally:
        PROCESS.use(None)

"""Facts for the span of the work in hand, by the attribute names of `names`.

    annotate({"gen_ai.request.model": "talk", "gen_ai.usage.output_tokens": 12})

Without a tracing SDK, or where the span is not sampled, nothing happens.
"""

from collections.abc import Mapping

from opentelemetry import trace

from libs.telemetry.names import ATTRIBUTES

KNOWN = frozenset(ATTRIBUTES)


def annotate(facts: Mapping[str, str | int | float | None]) -> None:
    """Put facts on the current span; None = not known. ValueError for a name that is not in the list."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    for name, value in facts.items():
        if name not in KNOWN:
            raise ValueError(f"{name} is no attribute of libs.telemetry.names")
        if value is not None:
            span.set_attribute(name, value)

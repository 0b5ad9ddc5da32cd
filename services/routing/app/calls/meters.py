"""What a call and its tries are counted by, and what a trace tells of it (SYN-11): figures, never a word."""

from collections.abc import Callable
from functools import cache

from libs.telemetry import metrics, names
from libs.telemetry.spans import annotate
from services.routing.domain.calls.call import Call, Try
from services.routing.domain.calls.stall_clock import NANOS

OPERATIONS = {"chat": "chat", "embedding": "embeddings", "image": "generate_content", "speech": "text_to_speech"}
"""Our kinds in the words of the GenAI conventions; a kind that they have no word for goes by its own."""
TOKENS = {
    "input": "input_tokens",
    "cached_input": "cached_input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
}


def ended(call: Call) -> None:
    """Count a call that has ended, and its tries."""
    page, code, times = metrics.PROCESS, call.failure.code if call.failure else "", call.times
    page.counter(names.CALLS_ENDED, model=call.model, state=call.state.value, code=code).inc()
    wall, stall, overhead = _parts(call.model)
    wall(times.wall_ns / NANOS)
    stall(times.stall_ns / NANOS)
    overhead(times.overhead_ns / NANOS)
    if call.cached:
        page.counter(names.CALLS_CACHED, model=call.model).inc()
    for item in call.tries:
        _tried(item)
    _trace(call, code)


@cache
def _parts(model: str) -> tuple[Callable[[float], None], ...]:
    """Where the parts of its time are counted: wall, stall, overhead."""
    page, parts = metrics.PROCESS, ("wall", "stall", "overhead")
    return tuple(page.histogram(names.CALL_SECONDS, model=model, part=part).observe for part in parts)


def _tried(item: Try) -> None:
    page, code = metrics.PROCESS, item.failure.code if item.failure else ""
    page.counter(names.CALL_ATTEMPTS_ENDED, supply=item.supply, state=item.state.value, code=code).inc()
    if item.latency_ns is not None:
        page.histogram(names.CALL_ATTEMPT_SECONDS, supply=item.supply).observe(item.latency_ns / NANOS)
    if item.first_token_ns is not None:
        page.histogram(names.CALL_FIRST_TOKEN_SECONDS, supply=item.supply).observe(item.first_token_ns / NANOS)
    for sort, name in TOKENS.items():
        if item.usage is not None and (count := getattr(item.usage, name)):
            page.counter(names.CALL_TOKENS, supply=item.supply, sort=sort).inc(count)


def _trace(call: Call, code: str) -> None:
    usage = call.usage
    annotate(
        {
            "gen_ai.operation.name": OPERATIONS.get(call.kind, call.kind),
            "gen_ai.request.model": call.model,
            "gen_ai.conversation.id": call.session_id or None,
            "gen_ai.usage.input_tokens": usage.input_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.output_tokens if usage else None,
            "error.type": code or None,
            "pointsman.call_id": call.id,
            "pointsman.parent_call_id": call.parent_call_id or None,
            "pointsman.supply": call.supply or None,
        }
    )

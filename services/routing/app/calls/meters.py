"""What a call and its tries are counted by, and what a trace tells of it (SYN-11): figures, never a word."""

from collections.abc import Callable
from functools import cache

from libs.telemetry import metrics, names, spans
from libs.telemetry.generative import operation_of
from services.routing.domain.calls.call import Call, Try
from services.routing.domain.calls.stall_clock import NANOS

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
        _attempt_seconds(item.supply)(item.latency_ns / NANOS)
    if item.first_token_ns is not None:
        _first_token_seconds(item.supply)(item.first_token_ns / NANOS)
    for sort, name in TOKENS.items():
        if item.usage is not None and (count := getattr(item.usage, name)):
            _tokens(item.supply, sort)(count)


@cache
def _attempt_seconds(supply: str) -> Callable[[float], None]:
    return metrics.PROCESS.histogram(names.CALL_ATTEMPT_SECONDS, supply=supply).observe


@cache
def _first_token_seconds(supply: str) -> Callable[[float], None]:
    return metrics.PROCESS.histogram(names.CALL_FIRST_TOKEN_SECONDS, supply=supply).observe


@cache
def _tokens(supply: str, sort: str) -> Callable[[float], None]:
    return metrics.PROCESS.counter(names.CALL_TOKENS, supply=supply, sort=sort).inc


def _trace(call: Call, code: str) -> None:
    if spans.PROCESS.tracer is None:
        return
    usage = call.usage
    spans.annotate(
        {
            names.GEN_AI_OPERATION: operation_of(call.kind),
            names.GEN_AI_REQUEST_MODEL: call.model,
            names.GEN_AI_CONVERSATION: call.session_id or None,
            names.GEN_AI_INPUT_TOKENS: usage.input_tokens if usage else None,
            names.GEN_AI_OUTPUT_TOKENS: usage.output_tokens if usage else None,
            names.ERROR_TYPE: code or None,
            names.CALL_ID: call.id,
            names.PARENT_CALL_ID: call.parent_call_id or None,
            names.SUPPLY: call.supply or None,
        }
    )

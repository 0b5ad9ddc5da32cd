"""Synchronous calls of routing."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from msgspec.structs import asdict

from pointsman.common.v1 import usage_pb2
from pointsman.routing.v1 import call_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.edge.domain import call_shapes
from services.edge.domain.calls import CallOptions, CallOrder, Receipt, Tokens
from services.edge.wire.tasks import selection
from services.edge.wire.values import amount, artifact, failure, moment, word


def request(tenant: str, call_id: str, order: CallOrder) -> pb.InvokeRequest:
    """The order as routing takes it."""
    return pb.InvokeRequest(
        call_id=call_id,
        tenant=tenant,
        model=order.model,
        kind=order.kind,
        input=order.input,
        options=_options(order.options),
    )


def _options(options: CallOptions) -> call_pb2.CallOptions:
    told = call_pb2.CallOptions(
        degradation=options.degradation,
        billing_mode=options.billing_mode,
        session_id=options.session_id,
        parent_call_id=options.parent_call_id,
        skip_cache=options.cache is False,
    )
    if options.timeout_s is not None:
        told.timeout.FromMicroseconds(round(options.timeout_s * 1_000_000))
    return told


def receipt(message: call_pb2.Call) -> Receipt:
    """How a call ended well."""
    degraded = message.HasField("degradation")
    lost = message.degradation
    return Receipt(
        call_id=message.id,
        kind=message.kind,
        supply=message.supply_id,
        attempts=len(message.attempts),
        cost=amount(message.cost),
        cached=message.cached,
        tokens=_tokens(message.usage),
        degraded=degraded,
        requested_profile=lost.requested_profile if degraded else "",
        actual_profile=lost.actual_profile if degraded else "",
        dropped_inputs=tuple(lost.dropped_inputs) if degraded else (),
        artifacts=tuple(artifact(item) for item in message.artifacts),
    )


def _tokens(message: usage_pb2.Usage) -> Tokens:
    return Tokens(
        input=_said(message, "input_tokens"),
        cached_input=_said(message, "cached_input_tokens"),
        output=_said(message, "output_tokens"),
        reasoning=_said(message, "reasoning_tokens"),
    )


def _said(message: usage_pb2.Usage, name: str) -> int | None:
    """A figure, None where the provider did not tell it."""
    return getattr(message, name) if message.HasField(name) else None  # type: ignore[arg-type]  # names of its fields


def call(message: call_pb2.Call) -> call_shapes.Call:
    """A call as its callers see it, with its rounds."""
    selections = [selection(item) for item in message.selections]
    return call_shapes.Call(**asdict(listed(message)), selections=selections)


def tenant_call(message: call_pb2.Call) -> call_shapes.TenantCall:
    """A call as operators see it in a list."""
    return call_shapes.TenantCall(**asdict(listed(message)), tenant=message.tenant)


def states(statuses: Iterable[str]) -> list[call_pb2.CallState.ValueType]:
    """The states of those public words."""
    return [call_pb2.CallState.Value(f"CALL_STATE_{status.upper()}") for status in statuses]


def listed(message: call_pb2.Call) -> call_shapes.ListedCall:
    """A call as its callers see it in a list."""
    lost = message.degradation if message.HasField("degradation") else None
    return call_shapes.ListedCall(
        id=message.id,
        model=message.model,
        kind=message.kind,
        status=word(call_pb2.CallState, message.state, "CALL_STATE_"),
        error=failure(message),
        attempts=[_attempt(item) for item in message.attempts],
        supply=message.supply_id or None,
        cached=message.cached,
        cost=amount(message.cost),
        degraded=lost is not None,
        requested_profile=(lost.requested_profile or None) if lost else None,
        actual_profile=(lost.actual_profile or None) if lost else None,
        dropped_inputs=list(lost.dropped_inputs) if lost else [],
        times=_times(message.times),
        usage=_usage(message.usage) if message.HasField("usage") else None,
        artifacts=[artifact(item) for item in message.artifacts],
        session_id=message.session_id or None,
        parent_call_id=message.parent_call_id or None,
        created_at=moment(message.create_time),
        finished_at=moment(message.finish_time),
    )


def _attempt(message: call_pb2.CallAttempt) -> call_shapes.CallAttempt:
    first = message.time_to_first_token if message.HasField("time_to_first_token") else None
    return call_shapes.CallAttempt(
        id=message.id,
        number=message.number,
        supply=message.supply_id,
        channel=message.channel_id,
        state=message.state,
        error=failure(message),
        quote=amount(message.quote),
        cost=amount(message.cost),
        possible_charge=message.possible_charge,
        sent_at=moment(message.send_time),
        latency_ms=_milliseconds(message.latency),
        time_to_first_token_ms=None if first is None else _milliseconds(first),
        reserved_tokens=message.reserved_tokens,
        usage=_usage(message.usage) if message.HasField("usage") else None,
        provider_request_id=message.provider_request_id or None,
        selection_round=message.selection_round,
    )


def _times(message: call_pb2.CallTimes) -> call_shapes.CallTimes:
    parts = (message.wall, message.productive, message.stall, message.overhead)
    return call_shapes.CallTimes(*(_milliseconds(part) for part in parts))


def _milliseconds(message: Duration) -> float:
    return message.ToNanoseconds() / 1_000_000


def _usage(message: usage_pb2.Usage) -> call_shapes.Usage:
    length = message.duration.ToMicroseconds() / 1_000_000 if message.HasField("duration") else None
    return call_shapes.Usage(
        input_tokens=_said(message, "input_tokens"),
        cached_input_tokens=_said(message, "cached_input_tokens"),
        cache_write_tokens=_said(message, "cache_write_tokens"),
        output_tokens=_said(message, "output_tokens"),
        reasoning_tokens=_said(message, "reasoning_tokens"),
        images=_said(message, "images"),
        characters=_said(message, "characters"),
        pages=_said(message, "pages"),
        duration_s=length,
    )

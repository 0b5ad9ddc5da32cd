"""Synchronous calls: what callers say and are told, and what providers and prices are."""

from collections.abc import Sequence

from libs.faults.fault import Fault
from libs.rpc.values import (
    money_from_proto,
    money_to_proto,
    nanos_to_proto,
    seconds_of,
    seconds_to_proto,
    time_from_proto,
    time_to_proto,
)
from pointsman.provider_adapter.v1 import provider_pb2, provider_service_pb2
from pointsman.routing.v1 import call_list_pb2, call_pb2, routing_service_pb2, task_pb2
from services.routing.app.calls.open_call import Asked
from services.routing.domain.calls.call import Call, CallState, Try
from services.routing.domain.catalog import Channel, Supply
from services.routing.ports.calls import Answered, CallQuery, Outgoing, Report
from services.routing.wire import failures
from services.routing.wire.artifacts import artifact_from_proto, artifact_to_proto
from services.routing.wire.endpoints import endpoint
from services.routing.wire.usage import usage_from_proto, usage_to_proto

_STATES = {state: call_pb2.CallState.Value(f"CALL_STATE_{state.name}") for state in CallState}
_ENDS = {number: state for state, number in _STATES.items() if state is not CallState.RUNNING}
LONGEST_ID = 200


def asked_from_proto(message: routing_service_pb2.InvokeRequest, streamed: bool = False) -> Asked:
    """What is asked for. Fault `validation_failed` for what is missing."""
    missing = [(f"/{name}", "is required") for name in ("call_id", "tenant", "model") if not getattr(message, name)]
    if missing:
        raise Fault.invalid(*missing)
    if len(message.call_id) > LONGEST_ID or not message.call_id.isprintable():
        raise Fault.invalid(("/call_id", f"must have at most {LONGEST_ID} characters, all of them printable"))
    options = message.options
    return Asked(
        call_id=message.call_id,
        tenant=message.tenant,
        model=message.model,
        input=message.input,
        kind=message.kind,
        degradation=options.degradation,
        billing_mode=options.billing_mode,
        timeout_s=seconds_of(options.timeout) if options.HasField("timeout") else None,
        session_id=options.session_id[:LONGEST_ID],
        parent_call_id=options.parent_call_id[:LONGEST_ID],
        skip_cache=options.skip_cache,
        streamed=streamed,
    )


def query_from_proto(message: call_list_pb2.ListCallsRequest) -> CallQuery:
    """Which calls are listed. Fault `validation_failed` for a state in which no call ends, and a time that is none."""
    if any(state not in _ENDS for state in message.states):
        told = "may name how calls end: succeeded, failed or abandoned; one that is under way is read by its id"
        raise Fault.invalid(("/states", told))
    return CallQuery(
        tenant=message.tenant,
        model=message.model,
        states=tuple(_ENDS[state] for state in message.states),
        session_id=message.session_id,
        since=time_from_proto(message.since_time, "/since_time"),
        until=time_from_proto(message.until_time, "/until_time"),
    )


# --- A call -----------------------------------------------------------------------------------------------------------


def call_to_proto(call: Call) -> call_pb2.Call:
    """A call with its tries, without its selections."""
    times = call.times
    changed = call.changed
    return call_pb2.Call(
        id=call.id,
        tenant=call.tenant,
        model=call.model,
        kind=call.kind,
        state=_STATES[call.state],
        failure=failures.to_proto(call.failure),
        attempts=[_try(item) for item in call.tries],
        supply_id=call.supply,
        cached=call.cached,
        cost=money_to_proto(call.cost),
        degradation=task_pb2.Degradation(
            rule_id=changed.rule,
            requested_profile=changed.requested_profile,
            actual_profile=changed.actual_profile,
            dropped_inputs=changed.dropped_inputs,
        )
        if changed
        else None,
        times=call_pb2.CallTimes(
            wall=nanos_to_proto(times.wall_ns),
            productive=nanos_to_proto(times.productive_ns),
            stall=nanos_to_proto(times.stall_ns),
            overhead=nanos_to_proto(times.overhead_ns),
        ),
        session_id=call.session_id,
        parent_call_id=call.parent_call_id,
        create_time=time_to_proto(call.created_at),
        finish_time=time_to_proto(call.finished_at),
        artifacts=[artifact_to_proto(item) for item in call.artifacts],
        usage=None if call.usage is None else usage_to_proto(call.usage),
    )


def pieces_to_proto(pieces: list[bytes] | Call, together: bool) -> Sequence[routing_service_pb2.InvokeStreamResponse]:
    """The next messages of a stream: pieces in one or each in its own; the call itself is the last."""
    if isinstance(pieces, Call):
        return (routing_service_pb2.InvokeStreamResponse(call=call_to_proto(pieces)),)
    if together:
        return (routing_service_pb2.InvokeStreamResponse(chunks=pieces),)
    return [routing_service_pb2.InvokeStreamResponse(chunk=chunk) for chunk in pieces]


def _try(item: Try) -> call_pb2.CallAttempt:
    return call_pb2.CallAttempt(
        id=item.id,
        number=item.number,
        supply_id=item.supply,
        channel_id=item.channel,
        state=item.state.value,
        failure=failures.to_proto(item.failure),
        quote=money_to_proto(item.quote),
        cost=money_to_proto(item.cost),
        possible_charge=item.possible_charge,
        send_time=time_to_proto(item.sent_at),
        latency=None if item.latency_ns is None else nanos_to_proto(item.latency_ns),
        time_to_first_token=None if item.first_token_ns is None else nanos_to_proto(item.first_token_ns),
        reserved_tokens=item.reserved_tokens,
        usage=None if item.usage is None else usage_to_proto(item.usage),
        provider_request_id=item.provider_request_id,
        selection_round=item.round,
    )


# --- Providers --------------------------------------------------------------------------------------------------------


def synchronous_call(supply: Supply, outgoing: Outgoing) -> provider_pb2.SynchronousCall:
    """What is said to provider_adapter."""
    return provider_pb2.SynchronousCall(
        attempt_id=outgoing.attempt_id,
        client_token=outgoing.attempt_id,
        kind=outgoing.kind,
        upstream_model=supply.upstream_model,
        input=outgoing.input,
        first_token_timeout=seconds_to_proto(outgoing.first_token_s) if outgoing.first_token_s else None,
        inter_token_timeout=seconds_to_proto(outgoing.inter_token_s) if outgoing.inter_token_s else None,
    )


def invoke_to_proto(channel: Channel, supply: Supply, outgoing: Outgoing) -> provider_service_pb2.InvokeRequest:
    """One call."""
    call = synchronous_call(supply, outgoing)
    return provider_service_pb2.InvokeRequest(channel=endpoint(channel), call=call)


def stream_to_proto(channel: Channel, supply: Supply, outgoing: Outgoing) -> provider_service_pb2.InvokeStreamRequest:
    """The same, streamed."""
    call = synchronous_call(supply, outgoing)
    return provider_service_pb2.InvokeStreamRequest(channel=endpoint(channel), call=call, together=True)


def answered_from_proto(message: provider_service_pb2.InvokeResponse) -> Answered:
    """What a call gave."""
    artifacts = tuple(map(artifact_from_proto, message.artifacts))
    return Answered(message.output, report_from_proto(message.report), artifacts)


def streamed_from_proto(message: provider_service_pb2.InvokeStreamResponse) -> list[bytes] | Report:
    """The next pieces of a stream, or its report."""
    if message.chunks:
        return list(message.chunks)
    return report_from_proto(message.report) if message.HasField("report") else [message.chunk]


def report_from_proto(message: provider_pb2.CallReport) -> Report:
    """What it gave beside its output."""
    first = message.time_to_first_token
    return Report(
        usage=usage_from_proto(message.usage) if message.HasField("usage") else None,
        finish_reason=message.finish_reason,
        provider_request_id=message.provider_request_id,
        reported_cost=money_from_proto(message.reported_cost),
        first_token_s=seconds_of(first) if message.HasField("time_to_first_token") else None,
        ignored_fields=tuple(message.ignored_fields),
    )

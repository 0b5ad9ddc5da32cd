"""Between protobuf and the values of the domain, in both directions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from google.protobuf import duration_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.rpc.values import money_to_proto, seconds_of, seconds_to_proto
from pointsman.common.v1 import artifact_pb2, usage_pb2
from pointsman.provider_adapter.v1 import provider_pb2, provider_service_pb2
from services.provider_adapter.app.stream import Ended
from services.provider_adapter.domain.adapter import Manifest, Quality
from services.provider_adapter.domain.calls import Report, Usage, Watch
from services.provider_adapter.domain.exchange import Reply
from services.provider_adapter.domain.inputs import JsonInput
from services.provider_adapter.domain.job import Endpoint, Job, Timeouts
from services.provider_adapter.domain.outcomes import JobState, Reconciled, Result, Stored, Verdict

_STATES = {
    JobState.QUEUED: provider_pb2.JOB_STATE_QUEUED,
    JobState.RUNNING: provider_pb2.JOB_STATE_RUNNING,
    JobState.SUCCEEDED: provider_pb2.JOB_STATE_SUCCEEDED,
    JobState.FAILED: provider_pb2.JOB_STATE_FAILED,
    JobState.CANCELLED: provider_pb2.JOB_STATE_CANCELLED,
}
_VERDICTS = {
    Verdict.ACCEPTED: provider_pb2.RECONCILE_VERDICT_ACCEPTED,
    Verdict.NOT_ACCEPTED: provider_pb2.RECONCILE_VERDICT_NOT_ACCEPTED,
    Verdict.UNKNOWN: provider_pb2.RECONCILE_VERDICT_UNKNOWN,
}


def endpoint_of(channel: provider_pb2.ChannelEndpoint, default: Timeouts) -> Endpoint:
    """Raises Fault `validation_failed` for what is required and missing."""
    for name in ("channel_id", "adapter", "base_url", "secret_ref"):
        if not getattr(channel, name):
            raise Fault.invalid((f"/channel/{name}", "is required"))
    timeouts = Timeouts(
        connect_s=_seconds(channel.timeouts, "connect", default.connect_s),
        submit_s=_seconds(channel.timeouts, "submit", default.submit_s),
        poll_s=_seconds(channel.timeouts, "poll", default.poll_s),
    )
    return Endpoint(
        channel.channel_id, channel.adapter, channel.base_url, channel.secret_ref, timeouts, channel.reconcile_by
    )


def _seconds(timeouts: provider_pb2.Timeouts, name: Literal["connect", "submit", "poll"], default: float) -> float:
    if not timeouts.HasField(name):
        return default
    value: duration_pb2.Duration = getattr(timeouts, name)
    seconds = seconds_of(value)
    return seconds if seconds > 0 else default


def job_of(job: provider_pb2.ProviderJob) -> Job:
    """Raises Fault `validation_failed` for what is required and missing."""
    for name in ("attempt_id", "client_token", "kind", "upstream_model"):
        if not getattr(job, name):
            raise Fault.invalid((f"/job/{name}", "is required"))
    return Job(job.attempt_id, job.client_token, job.kind, job.upstream_model, _plain(MessageToDict(job.input)))


def call_of(call: provider_pb2.SynchronousCall) -> tuple[Job, Watch]:
    """The job that a synchronous call is, and its watchdogs. Raises Fault `validation_failed` for what is missing."""
    for name in ("attempt_id", "client_token", "kind", "upstream_model"):
        if not getattr(call, name):
            raise Fault.invalid((f"/call/{name}", "is required"))
    job = Job(call.attempt_id, call.client_token, call.kind, call.upstream_model, JsonInput(call.input))
    return job, Watch(_positive(call, "first_token_timeout"), _positive(call, "inter_token_timeout"))


def _positive(
    call: provider_pb2.SynchronousCall, name: Literal["first_token_timeout", "inter_token_timeout"]
) -> float | None:
    value: duration_pb2.Duration = getattr(call, name)
    seconds = seconds_of(value) if call.HasField(name) else 0.0
    return seconds if seconds > 0 else None


def report_to_proto(report: Report, first_token_s: float) -> provider_pb2.CallReport:
    """What a call gave beside its output."""
    return provider_pb2.CallReport(
        usage=_usage_to_proto(report.usage),
        finish_reason=report.finish_reason,
        provider_request_id=report.provider_request_id,
        time_to_first_token=seconds_to_proto(first_token_s),
        ignored_fields=report.ignored_fields,
        reported_cost=money_to_proto(report.reported_cost),
    )


def streamed_to_proto(
    piece: list[bytes] | Ended, together: bool
) -> Sequence[provider_service_pb2.InvokeStreamResponse]:
    """The next messages of a stream: chunks in one or each in its own, or the report."""
    if isinstance(piece, Ended):
        report = report_to_proto(piece.report, piece.first_token_s)
        return (provider_service_pb2.InvokeStreamResponse(report=report),)
    if together:
        return (provider_service_pb2.InvokeStreamResponse(chunks=piece),)
    return [provider_service_pb2.InvokeStreamResponse(chunk=chunk) for chunk in piece]


def _usage_to_proto(usage: Usage) -> usage_pb2.Usage:
    counts = {name: value for name in _COUNTS if (value := getattr(usage, name)) is not None}
    seconds = None if usage.seconds is None else seconds_to_proto(usage.seconds)
    return usage_pb2.Usage(**counts, duration=seconds)


_COUNTS = tuple(name for name in Usage.__struct_fields__ if name != "seconds")


def artifact_to_proto(item: Stored) -> artifact_pb2.Artifact:
    """A stored output."""
    seen = item.measures
    return artifact_pb2.Artifact(
        sha256=item.sha256,
        media_type=item.media_type,
        size_bytes=item.size_bytes,
        width=min(seen.width, MOST_PIXELS),
        height=min(seen.height, MOST_PIXELS),
        duration=seconds_to_proto(seen.duration_s) if seen.duration_s else None,
    )


MOST_PIXELS = 2**31 - 1


def _plain(value: Any) -> Any:
    """JSON values with whole numbers as int: a Struct knows only floats."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def result_to_proto(result: Result) -> provider_pb2.ProviderResult:
    """A stored result."""
    return provider_pb2.ProviderResult(
        artifacts=[artifact_to_proto(item) for item in result.artifacts],
        output=_struct(result.output),
        usage=_struct(result.usage),
        reported_cost=money_to_proto(result.reported_cost),
    )


def _struct(value: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(dict(value))
    return struct


def polled_to_proto(state: JobState, result: Result | None, failure: Fault | None) -> provider_service_pb2.PollResponse:
    """Where a job stands."""
    return provider_service_pb2.PollResponse(
        state=_STATES[state],
        result=None if result is None else result_to_proto(result),
        failure=None if failure is None else failure_to_proto(failure),
    )


def reconciled_to_proto(reconciled: Reconciled) -> provider_service_pb2.ReconcileResponse:
    """A verdict."""
    return provider_service_pb2.ReconcileResponse(
        verdict=_VERDICTS[reconciled.verdict],
        provider_task_id=reconciled.provider_task_id,
        evidence=reconciled.evidence,
        result=None if reconciled.result is None else result_to_proto(reconciled.result),
    )


def adapter_to_proto(manifest: Manifest, quality: Quality) -> provider_pb2.Adapter:
    """A dialect on offer."""
    return provider_pb2.Adapter(
        name=manifest.name,
        kinds=manifest.kinds,
        synchronous_kinds=manifest.synchronous_kinds,
        reconcile_by=manifest.reconcile_by,
        cancels=manifest.cancels,
        ignored_fields=sorted(manifest.ignored_fields),
        reconcile_offers=manifest.reconcile_offers,
        streamed_kinds=manifest.streamed_kinds,
        limits=manifest.limits,
        cost_fields=manifest.cost_fields,
        auth=manifest.auth.told(),
        states={theirs: state.value for theirs, state in manifest.states.items()},
        quality=provider_pb2.AdapterQuality(
            recorded_exchanges=quality.exchanges,
            exchanges_with_unknown_fields=quality.unknown_fields,
            fault_rows=quality.fault_rows,
            reconciles=quality.reconciles,
            prices_usage=quality.prices_usage,
            classified_failures=quality.classified,
            labelled_failures=quality.labelled,
        ),
    )


def reply_of(request: provider_service_pb2.ClassifyFailureRequest) -> Reply:
    """A reply that somebody else heard."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Reply(request.http_status, headers, request.body, request.transport_error)

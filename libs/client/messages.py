"""Between the messages of gRPC and the shapes of this library."""

from collections.abc import Mapping
from typing import Any

from libs.client.shapes import Artifact, Event, Failure, Run, RunResult
from libs.faults.failures import failure_from_proto, sentence
from libs.rpc.values import struct_from, struct_to_dict, time_from_proto
from pointsman.common.v1 import artifact_pb2
from pointsman.runs.v1 import run_pb2, runs_service_pb2


def creation(
    tenant: str, model: str, given: Mapping[str, Any], labels: Mapping[str, str]
) -> runs_service_pb2.CreateRunRequest:
    """The request for a new Run."""
    return runs_service_pb2.CreateRunRequest(tenant=tenant, model=model, input=struct_from(given), labels=labels)


def run(message: run_pb2.Run) -> Run:
    """A Run; a state of a later release reads `unknown`."""
    known = message.state in run_pb2.RunState.values()
    state = run_pb2.RunState.Name(message.state).removeprefix("RUN_STATE_").lower() if known else "unknown"
    return Run(
        id=message.id,
        status=state,
        model=message.model or None,
        created_at=time_from_proto(message.create_time),
        finished_at=time_from_proto(message.finish_time),
        error=_failure(message) if message.HasField("failure") else None,
        result=_result(message.result) if message.HasField("result") else None,
        nodes=[{"id": node.id, "kind": node.kind, "task_id": node.task_id or None} for node in message.nodes],
        labels=dict(message.labels),
    )


def event(message: run_pb2.RunEvent) -> Event:
    """One event, whatever its kind."""
    return Event(
        sequence=message.sequence,
        kind=message.kind,
        run_id=message.run_id,
        data=struct_to_dict(message.data),
        created_at=time_from_proto(message.create_time),
    )


def _failure(message: run_pb2.Run) -> Failure:
    fault = failure_from_proto(message.failure)
    return Failure(fault.code, sentence(fault), fault.retryable, fault.category.value, fault.scope.value)


def _result(message: run_pb2.RunResult) -> RunResult:
    return RunResult(
        artifacts=[_artifact(item) for item in message.artifacts],
        output=struct_to_dict(message.output),
        degraded=message.degraded,
        requested_profile=message.requested_profile or None,
        actual_profile=message.actual_profile or None,
        dropped_inputs=list(message.dropped_inputs),
    )


def _artifact(message: artifact_pb2.Artifact) -> Artifact:
    return Artifact(message.sha256, message.media_type, message.size_bytes, f"/v1/artifacts/{message.sha256}")

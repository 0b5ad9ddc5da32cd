"""Proto <-> domain, and nothing else."""

from collections.abc import Iterable

from libs.faults.failures import failure_from_proto, failure_to_proto, sentence
from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from libs.rpc.values import (
    money_from_proto,
    money_to_proto,
    struct_from,
    struct_to_dict,
    time_from_proto,
    time_to_proto,
)
from pointsman.common.v1 import artifact_pb2, failure_pb2
from pointsman.routing.v1 import routing_service_pb2, task_pb2
from pointsman.runs.v1 import run_pb2, runs_service_pb2
from services.runs.domain.run import Artifact, Event, Failure, Node, Order, Result, Run, RunState
from services.runs.domain.task_view import AttemptView, TaskView


def order_from_proto(request: runs_service_pb2.CreateRunRequest) -> Order:
    """What the caller asks for."""
    options = request.options
    return Order(
        model=request.model,
        input=struct_to_dict(request.input),
        degradation=options.degradation,
        billing_mode=options.billing_mode,
        priority=_priority_name(options.priority),
        deadline=time_from_proto(options.deadline_time),
        callback_url=request.callback_url,
    )


def _priority_name(priority: task_pb2.Priority.ValueType) -> str:
    name = task_pb2.Priority.Name(priority).removeprefix("PRIORITY_").lower()
    return "" if name == "unspecified" else name


def submission(tenant: str, order: Order) -> routing_service_pb2.SubmitTaskRequest:
    """The order as routing takes it; ids are the caller's to add."""
    priority = task_pb2.Priority.Value(f"PRIORITY_{(order.priority or 'unspecified').upper()}")
    return routing_service_pb2.SubmitTaskRequest(
        tenant=tenant,
        model=order.model,
        input=struct_from(order.input),
        options=task_pb2.TaskOptions(
            degradation=order.degradation,
            billing_mode=order.billing_mode,
            priority=priority,
            deadline_time=time_to_proto(order.deadline),
        ),
    )


def task_from_proto(task: task_pb2.Task) -> TaskView:
    """A Task as runs sees it."""
    degraded = task.result.HasField("degradation")
    degradation = task.result.degradation
    return TaskView(
        id=task.id,
        revision=task.revision,
        state=task_pb2.TaskState.Name(task.state).removeprefix("TASK_STATE_").lower(),
        cost=money_from_proto(task.cost),
        waiting_reason=task.waiting_reason,
        attempts=tuple(_attempt(attempt) for attempt in task.attempts),
        artifacts=_artifacts(task.result.artifacts),
        output=struct_to_dict(task.result.output),
        degraded=degraded,
        requested_profile=degradation.requested_profile if degraded else task.result.profile,
        actual_profile=degradation.actual_profile if degraded else task.result.profile,
        dropped_inputs=tuple(degradation.dropped_inputs),
        failure=_failure(task.failure) if task.HasField("failure") else None,
    )


def _attempt(attempt: task_pb2.Attempt) -> AttemptView:
    return AttemptView(
        id=attempt.id,
        number=attempt.number,
        supply=attempt.supply_id,
        channel=attempt.channel_id,
        state=task_pb2.AttemptState.Name(attempt.state).removeprefix("ATTEMPT_STATE_").lower(),
        quote=money_from_proto(attempt.quote),
        cost=money_from_proto(attempt.cost),
        failure=_failure(attempt.failure) if attempt.HasField("failure") else None,
    )


def _artifacts(artifacts: Iterable[artifact_pb2.Artifact]) -> tuple[Artifact, ...]:
    return tuple(Artifact(item.sha256, item.media_type, item.size_bytes) for item in artifacts)


def _failure(failure: failure_pb2.Failure) -> Failure:
    fault = failure_from_proto(failure)
    return Failure(fault.category.value, fault.scope.value, fault.retryable, fault.code, sentence(fault))


def _failure_to_proto(failure: Failure | None) -> failure_pb2.Failure | None:
    if failure is None:
        return None
    fault = Fault(
        failure.code,
        failure.message,
        category=Category(failure.category),
        scope=Scope(failure.scope),
        retryable=failure.retryable,
    )
    return failure_to_proto(fault)


def _artifacts_to_proto(artifacts: Iterable[Artifact]) -> list[artifact_pb2.Artifact]:
    return [
        artifact_pb2.Artifact(sha256=item.sha256, media_type=item.media_type, size_bytes=item.size_bytes)
        for item in artifacts
    ]


def run_to_proto(run: Run) -> run_pb2.Run:
    """A Run as callers see it."""
    return run_pb2.Run(
        id=run.id,
        tenant=run.tenant,
        state=run_pb2.RunState.Value(f"RUN_STATE_{run.state.upper()}"),
        model=run.order.model,
        create_time=time_to_proto(run.created_at),
        start_time=time_to_proto(run.started_at),
        finish_time=time_to_proto(run.finished_at),
        failure=_failure_to_proto(run.failure),
        result=_result_to_proto(run.result),
        usage=run_pb2.RunUsage(
            cost=money_to_proto(run.usage.cost), attempts=run.usage.attempts, supply_id=run.usage.supply
        ),
        nodes=[_node_to_proto(run.node, handed_over=run.started_at is not None)],
        labels=dict(run.labels),
        last_sequence=run.last_sequence,
        input=struct_from(run.order.input),
    )


def _result_to_proto(result: Result | None) -> run_pb2.RunResult | None:
    if result is None:
        return None
    return run_pb2.RunResult(
        artifacts=_artifacts_to_proto(result.artifacts),
        output=struct_from(result.output),
        degraded=result.degraded,
        requested_profile=result.requested_profile,
        actual_profile=result.actual_profile,
        dropped_inputs=result.dropped_inputs,
    )


def _node_to_proto(node: Node, handed_over: bool) -> run_pb2.Node:
    """A Task is named once routing has it: a Run cancelled or refused before that has none that could be read."""
    return run_pb2.Node(
        id=node.id,
        kind=node.kind,
        state=run_pb2.NodeState.Value(f"NODE_STATE_{node.state.upper()}"),
        task_id=node.task_id if handed_over else "",
        waiting_reason=node.waiting_reason,
        artifacts=_artifacts_to_proto(node.artifacts),
        failure=_failure_to_proto(node.failure),
    )


def event_to_proto(event: Event) -> run_pb2.RunEvent:
    """One fact of a Run's history."""
    return run_pb2.RunEvent(
        id=event.id,
        run_id=event.run_id,
        sequence=event.sequence,
        kind=event.kind,
        data=struct_from(event.data),
        create_time=time_to_proto(event.created_at),
    )


def states_from_proto(states: Iterable[run_pb2.RunState.ValueType]) -> list[RunState]:
    """The states asked for."""
    return [RunState(run_pb2.RunState.Name(state).removeprefix("RUN_STATE_").lower()) for state in states]

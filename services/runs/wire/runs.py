"""Proto <-> domain, and nothing else."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from libs.faults.failures import failure_from_proto, failure_to_proto, sentence
from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from libs.kernel.canonical import digest, plain
from libs.kernel.money import Money
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
from services.runs.app.command_run import Steered
from services.runs.app.redrive_run import Redrive, Touched
from services.runs.domain.plan import Plan
from services.runs.domain.readiness import Look
from services.runs.domain.run import Artifact, Event, Failure, Node, Order, Result, Run, RunState
from services.runs.domain.task_view import AttemptView, Estimate, TaskView

LARGEST_ORDER_BYTES = 4 * 1024 * 1024
"""Of an order without its materials, which travel as digests: it is kept with its Run and read at every step."""


def refuse_oversize(request: runs_service_pb2.CreateRunRequest) -> None:
    """Fault payload_too_large for an order that every reader of the Run would suffer from (EDG-3)."""
    size = request.ByteSize()
    if size > LARGEST_ORDER_BYTES:
        told = f"without its materials the order has {size} bytes, of which a run keeps at most {LARGEST_ORDER_BYTES}"
        raise Fault.of("payload_too_large", told)


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


def fingerprint_of(request: runs_service_pb2.CreateRunRequest) -> str:
    """What a key is bound to: the caller's own fingerprint, or that of the order where it says none (IDEM-1).

    A deadline is a time, which a caller works out anew for each repeat, so it does not count.
    """
    order = order_from_proto(request)
    told = {"production": production_from_proto(request), "labels": dict(request.labels), "budget": request.budget_id}
    return request.fingerprint or digest([plain(replace(order, deadline=None)), told])


def production_from_proto(request: runs_service_pb2.CreateRunRequest) -> dict[str, Any] | None:
    """The production document; None for a single generation."""
    return struct_to_dict(request.production) if request.HasField("production") else None


def redrive_from_proto(request: runs_service_pb2.RedriveRunRequest) -> Redrive:
    """What is to run again."""
    return Redrive(
        node=request.node_id,
        reason=request.reason,
        who=request.actor,
        input=struct_to_dict(request.input) if request.HasField("input") else None,
        supply=request.supply_id,
        command_id=request.request_id,
    )


def steered_to_proto(steered: Steered, kind: str, plan: Plan) -> runs_service_pb2.SteerRunResponse:
    """An accepted input, and who may take it."""
    consumers = plan.consumers
    return runs_service_pb2.SteerRunResponse(
        steering_event_id=steered.id,
        sequence=steered.sequence,
        replayed=steered.replayed,
        node_ids=consumers.get(kind, ()),
        declared_kinds=consumers,
    )


def redriven_to_proto(
    run: run_pb2.Run, reached: Iterable[Touched], cost: Money | None, *, replayed: bool
) -> runs_service_pb2.RedriveRunResponse:
    """What a redrive reaches, and what that may cost."""
    affected = [
        runs_service_pb2.AffectedNode(node_id=each.node, effect=each.effect, cost=money_to_proto(each.cost))
        for each in reached
    ]
    return runs_service_pb2.RedriveRunResponse(
        run=run, affected_nodes=affected, cost=money_to_proto(cost), replayed=replayed
    )


def _priority_name(priority: task_pb2.Priority.ValueType) -> str:
    name = task_pb2.Priority.Name(priority).removeprefix("PRIORITY_").lower()
    return "" if name == "unspecified" else name


def submission(
    tenant: str, order: Order, *, supply: str = "", attempts: int = 0, hold: str = ""
) -> routing_service_pb2.SubmitTaskRequest:
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
            supply_id=supply,
            max_attempts=attempts,
            hold_id=hold,
        ),
    )


def estimate_from_proto(estimate: routing_service_pb2.Estimate) -> Estimate:
    """What a Task may cost at worst."""
    worst = money_from_proto(estimate.worst_cost) if estimate.HasField("worst_cost") else None
    return Estimate(worst, estimate.max_attempts, estimate.unpriced_reason)


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
        provider_task_id=attempt.provider_task_id,
    )


def _artifacts(artifacts: Iterable[artifact_pb2.Artifact]) -> tuple[Artifact, ...]:
    return tuple(Artifact(item.sha256, item.media_type, item.size_bytes) for item in artifacts)


def _failure(failure: failure_pb2.Failure) -> Failure:
    fault = failure_from_proto(failure)
    return Failure(fault.category.value, fault.scope.value, fault.retryable, fault.code, sentence(fault))


def failure_to_proto_message(failure: Failure | None) -> failure_pb2.Failure | None:
    """Why something ended, or None."""
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


def artifacts_to_proto(artifacts: Iterable[Artifact]) -> list[artifact_pb2.Artifact]:
    """Artifacts by digest."""
    return [
        artifact_pb2.Artifact(sha256=item.sha256, media_type=item.media_type, size_bytes=item.size_bytes)
        for item in artifacts
    ]


def run_to_proto(plan: Plan, run: Run, now: datetime) -> run_pb2.Run:
    """A Run as callers see it, with the reason for which each node waits at this moment."""
    look = Look(plan, run, now)
    return run_pb2.Run(
        id=run.id,
        tenant=run.tenant,
        state=run_pb2.RunState.Value(f"RUN_STATE_{run.state.upper()}"),
        model=run.order.model,
        create_time=time_to_proto(run.created_at),
        start_time=time_to_proto(run.started_at),
        finish_time=time_to_proto(run.finished_at),
        failure=failure_to_proto_message(run.failure),
        result=_result_to_proto(run.result),
        usage=run_pb2.RunUsage(
            cost=money_to_proto(run.usage.cost), attempts=run.usage.attempts, supply_id=run.usage.supply
        ),
        nodes=[_node_to_proto(look, node) for node in run.nodes.values()],
        labels=dict(run.labels),
        last_sequence=run.last_sequence,
        input=struct_from(run.order.input),
        production=struct_from(run.production) if run.production is not None else None,
        budget_id=run.budget_id,
        pending_steering_count=len(run.steering),
        backpressure=run.backpressure,
    )


def _result_to_proto(result: Result | None) -> run_pb2.RunResult | None:
    if result is None:
        return None
    return run_pb2.RunResult(
        artifacts=artifacts_to_proto(result.artifacts),
        output=struct_from(result.output),
        degraded=result.degraded,
        requested_profile=result.requested_profile,
        actual_profile=result.actual_profile,
        dropped_inputs=result.dropped_inputs,
    )


def _node_to_proto(look: Look, node: Node) -> run_pb2.Node:
    """A Task is named once routing has it: a Run cancelled or refused before that has none that could be read."""
    handed_over = node.started_at is not None and not node.items
    result = node.results.get(node.input_hash)
    asked = next((asked.id for asked in look.run.questions.values() if asked.node == node.id), "")
    return run_pb2.Node(
        id=node.id,
        kind=node.kind,
        state=run_pb2.NodeState.Value(f"NODE_STATE_{node.state.upper()}"),
        task_id=node.task_id if handed_over else "",
        waiting_reason=look.waiting_reason(node),
        artifacts=artifacts_to_proto(node.artifacts),
        failure=failure_to_proto_message(node.failure),
        parent_id=node.parent,
        shot_class=node.shot_class,
        needs=look.plan.spec(node.id).needs,
        input_hash=node.input_hash,
        tries=node.tries,
        attempts=node.attempts_made,
        cost=money_to_proto(node.cost),
        review_id=asked,
        start_time=time_to_proto(node.started_at),
        finish_time=time_to_proto(node.finished_at),
        retry_time=time_to_proto(node.retry_at),
        output=struct_from(result.output) if result is not None and result.output else None,
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

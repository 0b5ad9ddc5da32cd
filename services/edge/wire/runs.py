"""Runs and their events."""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import asdict

from libs.rpc.values import struct_from, struct_to_dict, time_to_proto
from pointsman.routing.v1 import task_pb2
from pointsman.runs.v1 import run_pb2, runs_service_pb2
from services.edge.domain import run_shapes, shapes
from services.edge.domain.orders import Order
from services.edge.wire.values import amount, artifact, failure, moment, word


def creation(
    tenant: str, order: Order, deadline: datetime | None, key: str, fingerprint: str
) -> runs_service_pb2.CreateRunRequest:
    """The order as runs takes it."""
    priority = task_pb2.Priority.Value(f"PRIORITY_{(order.priority or 'unspecified').upper()}")
    return runs_service_pb2.CreateRunRequest(
        tenant=tenant,
        model=order.model,
        input=struct_from(order.input),
        options=task_pb2.TaskOptions(
            degradation=order.degradation,
            billing_mode=order.billing_mode,
            priority=priority,
            deadline_time=time_to_proto(deadline),
        ),
        labels=order.labels,
        callback_url=order.callback_url,
        idempotency_key=key,
        fingerprint=fingerprint,
        production=struct_from(order.production) if order.production is not None else None,
        budget_id=order.budget,
    )


def states(statuses: Iterable[str]) -> list[run_pb2.RunState.ValueType]:
    """The states of those public words."""
    return [run_pb2.RunState.Value(f"RUN_STATE_{status.upper()}") for status in statuses]


def run(message: run_pb2.Run) -> shapes.Run:
    """A Run as callers see it."""
    return shapes.Run(
        id=message.id,
        status=word(run_pb2.RunState, message.state, "RUN_STATE_"),
        model=message.model or None,
        production=_production_name(message),
        created_at=moment(message.create_time),
        started_at=moment(message.start_time),
        finished_at=moment(message.finish_time),
        error=failure(message),
        result=_result(message.result) if message.HasField("result") else None,
        usage=shapes.RunUsage(amount(message.usage.cost), message.usage.attempts, message.usage.supply_id or None),
        nodes=[_node(node) for node in message.nodes],
        labels=dict(message.labels),
        budget_id=message.budget_id or None,
        pending_steering=message.pending_steering_count,
        backpressure=message.backpressure or None,
    )


def tenant_run(message: run_pb2.Run) -> run_shapes.TenantRun:
    """A Run as operators see it."""
    return run_shapes.TenantRun(**asdict(run(message)), tenant=message.tenant)


def _production_name(message: run_pb2.Run) -> str | None:
    if not message.HasField("production"):
        return None
    return str(message.production.fields["production"].string_value)


def _result(message: run_pb2.RunResult) -> shapes.RunResult:
    return shapes.RunResult(
        artifacts=[artifact(item) for item in message.artifacts],
        output=struct_to_dict(message.output),
        degraded=message.degraded,
        requested_profile=message.requested_profile or None,
        actual_profile=message.actual_profile or None,
        dropped_inputs=list(message.dropped_inputs),
    )


def _node(message: run_pb2.Node) -> shapes.RunNode:
    return shapes.RunNode(
        id=message.id,
        kind=message.kind,
        status=word(run_pb2.NodeState, message.state, "NODE_STATE_"),
        task_id=message.task_id or None,
        waiting_reason=message.waiting_reason or None,
        artifacts=[artifact(item) for item in message.artifacts],
        error=failure(message),
        parent=message.parent_id or None,
        shot_class=message.shot_class or None,
        needs=list(message.needs),
        input_hash=message.input_hash or None,
        tries=message.tries,
        attempts=message.attempts,
        cost=amount(message.cost),
        review_id=message.review_id or None,
        started_at=moment(message.start_time),
        finished_at=moment(message.finish_time),
        retry_at=moment(message.retry_time),
        output=struct_to_dict(message.output),
    )


def steered(reply: runs_service_pb2.SteerRunResponse) -> run_shapes.Steered:
    """An accepted input."""
    nodes, kinds = list(reply.node_ids), list(reply.declared_kinds)
    return run_shapes.Steered(reply.steering_event_id, reply.sequence, nodes, kinds)


def redriven(reply: runs_service_pb2.RedriveRunResponse) -> run_shapes.Redriven:
    """What a redrive reaches."""
    reached = [run_shapes.AffectedNode(item.node_id, item.effect, amount(item.cost)) for item in reply.affected_nodes]
    return run_shapes.Redriven(run(reply.run), reached, amount(reply.cost))


def event(message: run_pb2.RunEvent) -> shapes.RunEvent:
    """One fact of a Run's history."""
    return shapes.RunEvent(
        id=message.id,
        run_id=message.run_id,
        sequence=message.sequence,
        kind=message.kind,
        data=struct_to_dict(message.data),
        created_at=moment(message.create_time),
    )

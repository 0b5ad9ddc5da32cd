"""Between the messages of gRPC and the shapes of this library."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from google.type.money_pb2 import Money as MoneyProto

from libs.client.shapes import (
    AffectedNode,
    Amount,
    Artifact,
    DeadLetter,
    Event,
    Failure,
    Node,
    Redriven,
    Review,
    Run,
    RunResult,
)
from libs.faults.failures import failure_from_proto, sentence
from libs.kernel.money import Money
from libs.rpc.values import money_from_proto, money_to_proto, struct_from, struct_to_dict, time_from_proto
from pointsman.common.v1 import artifact_pb2, failure_pb2
from pointsman.runs.v1 import review_pb2, run_pb2, runs_service_pb2


def creation(
    tenant: str, model: str, given: Mapping[str, Any], labels: Mapping[str, str]
) -> runs_service_pb2.CreateRunRequest:
    """The request for a new Run."""
    return runs_service_pb2.CreateRunRequest(tenant=tenant, model=model, input=struct_from(given), labels=labels)


def run(message: run_pb2.Run) -> Run:
    """A Run; a state of a later release reads `unknown`."""
    return Run(
        id=message.id,
        status=_word(run_pb2.RunState, message.state, "RUN_STATE_"),
        model=message.model or None,
        production=message.production.fields["production"].string_value if message.HasField("production") else None,
        created_at=time_from_proto(message.create_time),
        finished_at=time_from_proto(message.finish_time),
        error=_failure(message),
        result=_result(message.result) if message.HasField("result") else None,
        nodes=[_node(node) for node in message.nodes],
        labels=dict(message.labels),
        pending_steering=message.pending_steering_count,
        backpressure=message.backpressure or None,
    )


def _node(message: run_pb2.Node) -> Node:
    return Node(
        id=message.id,
        kind=message.kind,
        status=_word(run_pb2.NodeState, message.state, "NODE_STATE_"),
        parent=message.parent_id or None,
        task_id=message.task_id or None,
        waiting_reason=message.waiting_reason or None,
        artifacts=[_artifact(item) for item in message.artifacts],
        error=_failure(message),
        shot_class=message.shot_class or None,
        tries=message.tries,
        attempts=message.attempts,
        cost=_amount(message.cost),
        review_id=message.review_id or None,
        output=struct_to_dict(message.output),
    )


def redriven(message: runs_service_pb2.RedriveRunResponse) -> Redriven:
    """What a redrive reaches."""
    affected = [AffectedNode(item.node_id, item.effect, _amount(item.cost)) for item in message.affected_nodes]
    return Redriven(run(message.run), affected, _amount(message.cost))


def event(message: run_pb2.RunEvent) -> Event:
    """One event, whatever its kind."""
    return Event(
        sequence=message.sequence,
        kind=message.kind,
        run_id=message.run_id,
        data=struct_to_dict(message.data),
        created_at=time_from_proto(message.create_time),
    )


def review(message: review_pb2.Review) -> Review:
    """A question; a decision of a later release reads `unknown`."""
    decided = message.decision != review_pb2.DECISION_UNSPECIFIED
    return Review(
        id=message.id,
        run_id=message.run_id,
        node=message.node_id,
        status=_word(review_pb2.ReviewState, message.state, "REVIEW_STATE_"),
        kind=message.kind,
        tenant=message.tenant,
        question=message.question,
        cause=message.cause,
        subject_hash=message.subject_hash or None,
        artifacts=[_artifact(item) for item in message.artifacts],
        subject_nodes=list(message.subject_node_ids),
        failures=[_failure_of(item) for item in message.failures],
        spent=_amount(message.spent),
        decisions=[_word(review_pb2.Decision, item, "DECISION_") for item in message.decisions],
        remedies=list(message.remedies),
        deadline=time_from_proto(message.deadline_time),
        assignee=message.assignee or None,
        deputy=message.deputy or None,
        escalations=message.escalations,
        root_cause=message.root_cause,
        rank=message.rank,
        input=struct_to_dict(message.input),
        created_at=time_from_proto(message.create_time),
        finished_at=time_from_proto(message.finish_time),
        decision=_word(review_pb2.Decision, message.decision, "DECISION_") if decided else None,
        decided_by=message.decider or None,
        comment=message.comment or None,
    )


def dead_letter(message: review_pb2.DeadLetter) -> DeadLetter:
    """A case file."""
    return DeadLetter(
        id=message.id,
        run_id=message.run_id,
        node=message.node_id,
        tenant=message.tenant,
        error=_failure(message),
        created_at=time_from_proto(message.create_time),
        task_ids=list(message.task_ids),
        attempts=[struct_to_dict(item) for item in message.attempts],
        cost=_amount(message.cost),
        input=struct_to_dict(message.input),
        desk=message.desk,
        artifacts=[_artifact(item) for item in message.artifacts],
        redriven_at=time_from_proto(message.redrive_time),
        redrive_reason=message.redrive_reason or None,
    )


def limit(amount: Amount | None) -> MoneyProto | None:
    """An amount as the contract says it. ValueError for one that is no decimal number."""
    if amount is None:
        return None
    try:
        return money_to_proto(Money(amount.currency, Decimal(amount.amount)))
    except ArithmeticError:
        raise ValueError(f"{amount.amount!r} is no decimal amount") from None


def _word(enum: Any, value: int, prefix: str) -> str:
    return str(enum.Name(value)).removeprefix(prefix).lower() if value in enum.values() else "unknown"


def _amount(message: MoneyProto) -> Amount | None:
    money = money_from_proto(message)
    return None if money is None else Amount(**money.to_json())


def _failure(message: Any) -> Failure | None:
    """The failure in the field `failure` of a message."""
    return _failure_of(message.failure) if message.HasField("failure") else None


def _failure_of(message: failure_pb2.Failure) -> Failure:
    fault = failure_from_proto(message)
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

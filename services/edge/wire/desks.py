"""Reviews and dead letters."""

from decimal import Decimal

from google.protobuf.struct_pb2 import Struct
from google.type.money_pb2 import Money as MoneyProto

from libs.kernel.money import Money
from libs.rpc.values import money_to_proto, struct_from, struct_to_dict
from pointsman.runs.v1 import review_pb2, review_service_pb2
from services.edge.domain import run_shapes
from services.edge.domain.decisions import Verdict
from services.edge.wire.values import amount, artifact, failure, failure_of, moment, word


def review(message: review_pb2.Review) -> run_shapes.Review:
    """A review with its context pack."""
    decided = message.decision != review_pb2.DECISION_UNSPECIFIED
    return run_shapes.Review(
        id=message.id,
        run_id=message.run_id,
        node=message.node_id,
        tenant=message.tenant,
        kind=message.kind,
        status=word(review_pb2.ReviewState, message.state, "REVIEW_STATE_"),
        question=message.question,
        cause=message.cause,
        subject_hash=message.subject_hash or None,
        artifacts=[artifact(item) for item in message.artifacts],
        subject_nodes=list(message.subject_node_ids),
        failures=[failure_of(item) for item in message.failures],
        spent=amount(message.spent),
        decisions=[word(review_pb2.Decision, item, "DECISION_") for item in message.decisions],
        remedies=list(message.remedies),
        deadline=moment(message.deadline_time),
        assignee=message.assignee or None,
        deputy=message.deputy or None,
        escalations=message.escalations,
        root_cause=message.root_cause,
        rank=message.rank,
        input=struct_to_dict(message.input),
        subject=struct_to_dict(Struct(fields={"subject": message.subject}))["subject"],
        created_at=moment(message.create_time),
        finished_at=moment(message.finish_time),
        decision=word(review_pb2.Decision, message.decision, "DECISION_") if decided else None,
        decided_by=message.decider or None,
        comment=message.comment or None,
    )


def dead_letter(message: review_pb2.DeadLetter) -> run_shapes.DeadLetter:
    """A case file."""
    return run_shapes.DeadLetter(
        id=message.id,
        run_id=message.run_id,
        node=message.node_id,
        tenant=message.tenant,
        error=failure(message),
        created_at=moment(message.create_time),
        task_ids=list(message.task_ids),
        attempts=[struct_to_dict(attempt) for attempt in message.attempts],
        cost=amount(message.cost),
        input=struct_to_dict(message.input),
        desk=message.desk,
        artifacts=[artifact(item) for item in message.artifacts],
        redriven_at=moment(message.redrive_time),
        redrive_reason=message.redrive_reason or None,
    )


def states(statuses: list[str]) -> list[review_pb2.ReviewState.ValueType]:
    """The states of those public words."""
    return [review_pb2.ReviewState.Value(f"REVIEW_STATE_{status.upper()}") for status in statuses]


def decision(tenant: str, review_id: str, who: str, verdict: Verdict) -> review_service_pb2.DecideRequest:
    """A decision as runs takes it."""
    return review_service_pb2.DecideRequest(
        review_id=review_id,
        tenant=tenant,
        decision=review_pb2.Decision.Value(f"DECISION_{verdict.decision.upper()}"),
        decider=who,
        comment=verdict.comment,
        input=struct_from(verdict.input) if verdict.input else None,
        budget=_limit(verdict),
        supply_id=verdict.supply,
        subject_hash=verdict.subject_hash,
        attempts=verdict.attempts,
        review_minutes=verdict.review_minutes,
    )


def _limit(verdict: Verdict) -> MoneyProto | None:
    if verdict.budget is None:
        return None
    currency, told = verdict.budget
    return money_to_proto(Money(currency, Decimal(told)))

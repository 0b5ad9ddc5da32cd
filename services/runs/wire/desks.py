"""Proto <-> domain for people's desks, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.values import money_from_proto, money_to_proto, struct_from, struct_to_dict, time_to_proto
from pointsman.runs.v1 import review_pb2, review_service_pb2
from services.runs.domain import event_data
from services.runs.domain.deciding import Verdict
from services.runs.domain.desks import DeadLetter, Review, ReviewState
from services.runs.domain.run import Decision
from services.runs.wire import runs as wire


def states_from_proto(states: Iterable[review_pb2.ReviewState.ValueType]) -> list[ReviewState]:
    """The states asked for."""
    return [ReviewState(review_pb2.ReviewState.Name(state).removeprefix("REVIEW_STATE_").lower()) for state in states]


def _decision(decision: str) -> review_pb2.Decision.ValueType:
    return review_pb2.Decision.Value(f"DECISION_{(decision or 'unspecified').upper()}")


def review_to_proto(review: Review) -> review_pb2.Review:
    """A review with its context pack."""
    asked = review.question
    return review_pb2.Review(
        id=asked.id,
        run_id=review.run_id,
        node_id=asked.node,
        tenant=review.tenant,
        kind=asked.kind,
        state=review_pb2.ReviewState.Value(f"REVIEW_STATE_{review.state.upper()}"),
        question=asked.question,
        cause=asked.cause,
        subject_hash=asked.subject_hash,
        artifacts=wire.artifacts_to_proto(asked.artifacts),
        subject_node_ids=asked.subjects,
        failures=[told for failure in asked.failures if (told := wire.failure_to_proto_message(failure))],
        spent=money_to_proto(asked.spent),
        decisions=[_decision(decision) for decision in asked.decisions],
        remedies=asked.remedies,
        deadline_time=time_to_proto(asked.deadline),
        assignee=asked.assignee,
        deputy=asked.deputy,
        escalations=asked.escalations,
        root_cause=asked.root_cause,
        rank=asked.rank,
        create_time=time_to_proto(asked.opened_at),
        finish_time=time_to_proto(review.finished_at),
        decision=_decision(review.decision),
        decider=review.decider,
        comment=review.comment,
        input=struct_from(asked.input) if asked.input else None,
        subject=struct_from({"subject": asked.subject}).fields["subject"] if asked.subject is not None else None,
    )


def verdict_from_proto(request: review_service_pb2.DecideRequest) -> Verdict:
    """What a person decided. Fault validation_failed without a decision or a name."""
    if request.decision == review_pb2.DECISION_UNSPECIFIED:
        raise Fault.invalid(("/decision", "is required"))
    for name in ("attempts", "review_minutes"):
        if getattr(request, name) < 0:
            raise Fault.invalid((f"/budget/{name}", "must be above 0; 0 would be no limit at all"))
    if not request.decider:
        raise Fault.invalid(("/decider", "is required: a decision names who made it"))
    given = struct_to_dict(request.input)
    node = given.pop("node", "")
    return Verdict(
        Decision(review_pb2.Decision.Name(request.decision).removeprefix("DECISION_").lower()),
        request.decider,
        request.comment,
        str(node),
        given,
        request.supply_id,
        event_data.money_json(money_from_proto(request.budget)) if request.HasField("budget") else None,
        request.attempts,
        request.review_minutes,
    )


def letter_to_proto(letter: DeadLetter, attempts: Sequence[Mapping[str, Any]]) -> review_pb2.DeadLetter:
    """A case file."""
    return review_pb2.DeadLetter(
        id=letter.id,
        run_id=letter.run_id,
        node_id=letter.node,
        tenant=letter.tenant,
        failure=wire.failure_to_proto_message(letter.failure),
        create_time=time_to_proto(letter.created_at),
        task_ids=letter.task_ids,
        attempts=[struct_from(attempt) for attempt in attempts],
        cost=money_to_proto(letter.cost),
        input=struct_from(letter.input),
        desk=letter.desk,
        artifacts=wire.artifacts_to_proto(letter.artifacts),
        redrive_time=time_to_proto(letter.redriven_at),
        redrive_reason=letter.redrive_reason,
    )

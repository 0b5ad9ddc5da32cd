"""Refusals for health, as they are told."""

from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import refusal_pb2, routing_service_pb2
from services.routing.app.explain_task import Explanation
from services.routing.domain.refusals import HealthCause, Refusal
from services.routing.wire.peers import subject_to_proto


def explanation_to_proto(explanation: Explanation) -> routing_service_pb2.ExplainTaskResponse:
    """Steps, story, refusals."""
    told = [_refusal(item, cause) for item, cause in explanation.refusals]
    return routing_service_pb2.ExplainTaskResponse(steps=explanation.steps, story=explanation.story, refusals=told)


def _refusal(item: Refusal, cause: HealthCause | None) -> refusal_pb2.HealthRefusal:
    return refusal_pb2.HealthRefusal(
        round=item.round,
        supply_id=item.supply,
        subject=subject_to_proto(item.sort, item.name),
        state=item.view.state,
        revision=item.view.revision,
        decide_time=time_to_proto(item.decided_at),
        cause=None if cause is None else _cause(cause),
    )


def _cause(cause: HealthCause) -> refusal_pb2.HealthCause:
    return refusal_pb2.HealthCause(
        sequence=cause.sequence,
        kind=cause.kind,
        reason=cause.reason,
        attempt_id=cause.attempt_id,
        observe_time=time_to_proto(cause.at),
        cooldown_until_time=time_to_proto(cause.cooldown_until),
    )

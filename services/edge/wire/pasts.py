"""What was: of health and of routing."""

from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_pb2, health_service_pb2
from pointsman.routing.v1 import refusal_pb2, routing_service_pb2
from services.edge.domain import past_shapes as shapes
from services.edge.wire.values import moment, word


def past_health(message: health_service_pb2.ExplainStateResponse) -> shapes.PastHealth:
    """A subject's past."""
    health = message.health
    return shapes.PastHealth(
        id=health.subject.id,
        sort=_sort(health.subject),
        state=_state(health.state),
        reason=health.reason or None,
        since=moment(health.since_time),
        cooldown_until=moment(health.cooldown_until_time),
        recovery_successes=health.recovery_successes,
        epoch=health.epoch,
        revision=health.revision,
        cause=_event(message.cause),
        events=[_event(item) for item in message.events],
    )


def explanation(task_id: str, message: routing_service_pb2.ExplainTaskResponse) -> shapes.Explanation:
    """Why a Task went where it went."""
    refusals = [_refusal(item) for item in message.refusals]
    return shapes.Explanation(task_id, list(message.steps), list(message.story), refusals)


def _sort(subject: subject_pb2.Subject) -> str:
    return word(subject_pb2.SubjectKind, subject.kind, "SUBJECT_KIND_")


def _state(number: health_pb2.HealthState.ValueType) -> str:
    return word(health_pb2.HealthState, number, "HEALTH_STATE_")


def _event(message: health_pb2.HealthEvent) -> shapes.HealthEvent:
    return shapes.HealthEvent(
        sequence=message.sequence,
        kind=message.kind,
        from_state=_state(message.from_state) if message.from_state else None,
        to_state=_state(message.to_state),
        epoch=message.epoch,
        recovery_successes=message.recovery_successes,
        reason=message.reason or None,
        attempt_id=message.attempt_id or None,
        observed_at=moment(message.observe_time),
    )


def _refusal(message: refusal_pb2.HealthRefusal) -> shapes.HealthRefusal:
    cause = None
    if message.HasField("cause"):
        event = message.cause
        cause = shapes.HealthCause(
            event.sequence,
            event.kind,
            event.reason or None,
            event.attempt_id or None,
            moment(event.observe_time),
            moment(event.cooldown_until_time),
        )
    return shapes.HealthRefusal(
        round=message.round,
        supply=message.supply_id,
        sort=_sort(message.subject),
        id=message.subject.id,
        state=message.state,
        revision=message.revision,
        decided_at=moment(message.decide_time),
        cause=cause,
    )

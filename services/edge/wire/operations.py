"""What operators watch: health and capacity."""

from pointsman.capacity.v1 import capacity_pb2, capacity_service_pb2
from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_pb2, health_service_pb2
from services.edge.domain import shapes
from services.edge.wire.values import moment, word

CHANNEL = subject_pb2.SubjectKind.SUBJECT_KIND_CHANNEL
SUPPLY = subject_pb2.SubjectKind.SUBJECT_KIND_SUPPLY


def health(message: health_service_pb2.GetSnapshotResponse) -> shapes.Health:
    """Every Channel and Supply at one moment."""
    return shapes.Health(
        channels=[subject_health(item) for item in message.subjects if item.subject.kind == CHANNEL],
        supplies=[subject_health(item) for item in message.subjects if item.subject.kind == SUPPLY],
    )


def subject_health(message: health_pb2.SubjectHealth) -> shapes.SubjectHealth:
    """The breaker of one Channel or Supply."""
    return shapes.SubjectHealth(
        id=message.subject.id,
        state=word(health_pb2.HealthState, message.state, "HEALTH_STATE_"),
        epoch=message.epoch,
        recovery_successes=message.recovery_successes,
        effective_concurrency=_allowed(message),
        since=moment(message.since_time),
        cooldown_until=moment(message.cooldown_until_time),
        success_rate=message.success_rate if message.HasField("success_rate") else None,
        success_rate_low=message.success_rate_low if message.HasField("success_rate_low") else None,
        success_rate_high=message.success_rate_high if message.HasField("success_rate_high") else None,
        samples=message.samples,
        reason=message.reason or None,
    )


def _allowed(message: health_pb2.SubjectHealth) -> int | None:
    """Where health sets no limit, all configured slots may be used; None = as many as anybody likes."""
    if message.HasField("effective_concurrency"):
        return message.effective_concurrency
    return message.configured_concurrency or None


def capacity(message: capacity_service_pb2.GetCapacityResponse) -> shapes.Capacity:
    """The figures of every Channel and Supply."""
    return shapes.Capacity(
        channels=[_subject_capacity(item) for item in message.subjects if item.subject.kind == CHANNEL],
        supplies=[_subject_capacity(item) for item in message.subjects if item.subject.kind == SUPPLY],
        leases=[_lease(item) for item in message.leases],
    )


def _subject_capacity(message: capacity_pb2.SubjectCapacity) -> shapes.SubjectCapacity:
    gated = message.configured or message.effective or message.health.HasField("limit") or message.HasField("adaptive")
    return shapes.SubjectCapacity(
        id=message.subject.id,
        configured=message.configured,
        effective=message.effective if gated else None,
        in_use=message.in_use,
        rpm_used=message.requests_used,
        tpm_used=message.tokens_used,
        adaptive=message.adaptive if message.HasField("adaptive") else None,
        frozen_until=moment(message.frozen_until_time) if message.HasField("frozen_until_time") else None,
    )


def _lease(message: capacity_pb2.Lease) -> shapes.Lease:
    return shapes.Lease(
        id=message.id,
        holder=message.holder,
        kind=message.kind,
        channel=message.channel_id,
        supply=message.supply_id,
        reserved_at=moment(message.reserve_time),
        expires_at=moment(message.expire_time),
    )

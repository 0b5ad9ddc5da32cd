"""Messages of `pointsman.capacity.v1` to domain values and back. Total in both directions, and nothing else."""

from collections.abc import Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from libs.faults.fault import Fault
from libs.rpc.values import moment_of, stamp_of
from pointsman.capacity.v1 import capacity_pb2 as pb
from pointsman.capacity.v1 import capacity_service_pb2 as service_pb
from pointsman.common.v1 import subject_pb2
from services.capacity.app.get_capacity import View
from services.capacity.app.release import Asked
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Gate, Refusal, room_at
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.domain.pacing import Feedback, Outcome
from services.capacity.ports import Figure, Renewal

KIND_NUMBERS = {kind: subject_pb2.SubjectKind.Value(f"SUBJECT_KIND_{kind.name}") for kind in Kind}
KINDS = {number: kind for kind, number in KIND_NUMBERS.items()}
OUTCOMES = {pb.PACE_SUCCEEDED: Outcome.SUCCEEDED, pb.PACE_CONGESTED: Outcome.CONGESTED}
GATE_NUMBERS = {gate: pb.Gate.Value(f"GATE_{gate.name}") for gate in Gate}


def subject_from_proto(message: subject_pb2.Subject, at: str) -> Subject:
    """The level at JSON pointer `at`. Fault `validation_failed` unless it names one."""
    if message.kind not in KINDS:
        raise Fault.invalid((f"{at}/kind", "must be GLOBAL, CHANNEL or SUPPLY"))
    if not message.id:
        raise Fault.invalid((f"{at}/id", "is required"))
    return Subject(KINDS[message.kind], message.id)


def subject_to_proto(subject: Subject) -> subject_pb2.Subject:
    """The message of a level's name."""
    return subject_pb2.Subject(kind=KIND_NUMBERS[subject.kind], id=subject.id)


def health_from_proto(message: pb.HealthLimit) -> HealthLimit:
    """What health allows."""
    limit = message.limit if message.HasField("limit") else None
    return HealthLimit(message.epoch, message.revision, limit)


def health_to_proto(subject: Subject, health: HealthLimit) -> pb.HealthLimit:
    """The message of it."""
    return pb.HealthLimit(
        subject=subject_to_proto(subject), epoch=health.epoch, revision=health.revision, limit=health.limit
    )


def told_health(messages: Sequence[pb.HealthLimit]) -> dict[Subject, HealthLimit]:
    """What health allows, by level; of two about one level the newer."""
    told: dict[Subject, HealthLimit] = {}
    for index, message in enumerate(messages):
        subject = subject_from_proto(message.subject, f"/health/{index}/subject")
        health = health_from_proto(message)
        if subject not in told or told[subject].revision < health.revision:
            told[subject] = health
    return told


def ttl_from_proto(message: Duration) -> timedelta:
    """The time to live; an absent or absurd one is no time at all and refused by the use-case."""
    try:
        return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except (OverflowError, ValueError):
        return timedelta(0)


def return_from_proto(message: service_pb.ReleaseRequest) -> Asked:
    """A lease to be given back; a pace that this release does not know says nothing."""
    used = message.used_tokens if message.HasField("used_tokens") else None
    after = max(ttl_from_proto(message.retry_after), timedelta(0)) if message.HasField("retry_after") else timedelta(0)
    return Asked(message.lease_id, message.holder, used, Feedback(OUTCOMES.get(message.pace, Outcome.UNSAID), after))


def request_from_proto(message: service_pb.ReserveRequest) -> Request:
    """The reservation asked for. Fault `validation_failed` without a view of health."""
    for name in ("channel_health", "supply_health"):
        if not message.HasField(name):
            raise Fault.invalid((f"/{name}", "is required"))
    return Request(
        lease_id=message.lease_id,
        holder=message.holder,
        kind=message.kind,
        channel_id=message.channel_id,
        supply_id=message.supply_id,
        channel_health=health_from_proto(message.channel_health),
        supply_health=health_from_proto(message.supply_health),
        tokens=message.tokens,
        ttl=ttl_from_proto(message.ttl),
    )


def reserved_to_proto(outcome: Lease | Refusal) -> service_pb.ReserveResponse:
    """Either half of the answer."""
    if isinstance(outcome, Lease):
        return service_pb.ReserveResponse(lease=lease_to_proto(outcome))
    refusal = pb.Refusal(
        subject=subject_to_proto(outcome.subject),
        gate=GATE_NUMBERS[outcome.gate],
        limit=outcome.limit,
        used=outcome.used,
        retry_time=stamp_of(outcome.retry_at) if outcome.retry_at else None,
    )
    return service_pb.ReserveResponse(refusal=refusal)


def lease_to_proto(lease: Lease) -> pb.Lease:
    """A lease as others see it."""
    return pb.Lease(
        id=lease.id,
        holder=lease.holder,
        kind=lease.kind,
        channel_id=lease.channel_id,
        supply_id=lease.supply_id,
        channel_epoch=lease.channel_epoch,
        supply_epoch=lease.supply_epoch,
        tokens=lease.tokens,
        reserve_time=stamp_of(lease.reserved_at),
        expire_time=stamp_of(lease.expires_at),
    )


def lease_from_proto(message: pb.Lease) -> Lease:
    """A lease as its holder remembers it."""
    return Lease(
        id=message.id,
        holder=message.holder,
        kind=message.kind,
        channel_id=message.channel_id,
        supply_id=message.supply_id,
        channel_epoch=message.channel_epoch,
        supply_epoch=message.supply_epoch,
        tokens=message.tokens,
        reserved_at=moment_of(message.reserve_time),
        expires_at=moment_of(message.expire_time),
    )


def renewal_to_proto(renewal: Renewal) -> service_pb.RenewLeasesResponse:
    """What became of each lease."""
    return service_pb.RenewLeasesResponse(renewed_lease_ids=renewal.renewed, lost_lease_ids=renewal.lost)


def level_from_proto(message: pb.SubjectLimits, index: int) -> Level:
    """The n-th level of a request."""
    subject = subject_from_proto(message.subject, f"/limits/{index}/subject")
    return Level(
        subject=subject,
        channel_id=message.channel_id if subject.kind is Kind.SUPPLY else "",
        concurrency=message.concurrency,
        requests_per_minute=message.requests_per_minute,
        tokens_per_minute=message.tokens_per_minute,
    )


def figure_to_proto(figure: Figure) -> pb.SubjectCapacity:
    """The present figures of one level."""
    level, usage = figure.level, figure.usage
    return pb.SubjectCapacity(
        subject=subject_to_proto(level.subject),
        configured=level.concurrency,
        effective=level.effective or 0,
        in_use=usage.in_use,
        in_use_current_epoch=usage.in_use_current_epoch,
        requests_used=usage.requests,
        tokens_used=usage.tokens,
        requests_per_minute=level.requests_per_minute,
        tokens_per_minute=level.tokens_per_minute,
        health=health_to_proto(level.subject, level.health) if level.health else None,
        adaptive=level.pace.slots,
        frozen_until_time=stamp_of(level.pace.frozen_until) if level.pace.frozen_until else None,
        room_time=stamp_of(room) if (room := room_at(level, usage)) else None,
    )


def view_to_proto(view: View) -> service_pb.GetCapacityResponse:
    """Every level asked for, and the leases."""
    return service_pb.GetCapacityResponse(
        subjects=[figure_to_proto(figure) for figure in view.figures],
        leases=[lease_to_proto(lease) for lease in view.leases],
    )


def hint_to_proto(subjects: Sequence[Subject]) -> service_pb.WatchCapacityResponse:
    """Something was freed."""
    return service_pb.WatchCapacityResponse(subjects=[subject_to_proto(subject) for subject in subjects])

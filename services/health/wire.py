"""Messages of `pointsman.health.v1` to domain values and back. Total in both directions; nothing else happens here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from libs.faults.failures import failure_from_proto
from libs.faults.fault import Fault
from libs.rpc.values import moment_of, stamp_of
from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_pb2 as pb
from pointsman.health.v1 import health_service_pb2 as service_pb
from services.health.app.apply_targets import Target
from services.health.app.explain_state import Explained
from services.health.app.report_outcome import Reported
from services.health.app.snapshot import Snapshot, View
from services.health.domain.events import Moment
from services.health.domain.observations import Failed, Outcome
from services.health.domain.states import State
from services.health.domain.subjects import Kind, Subject
from services.health.domain.thresholds import Thresholds
from services.health.ports import Recorded

KINDS = {subject_pb2.SUBJECT_KIND_CHANNEL: Kind.CHANNEL, subject_pb2.SUBJECT_KIND_SUPPLY: Kind.SUPPLY}
KIND_NUMBERS = {kind: number for number, kind in KINDS.items()}
STATE_NUMBERS = {state: pb.HealthState.Value(f"HEALTH_STATE_{state.name}") for state in State}
STATES = {number: state for state, number in STATE_NUMBERS.items()}

# Field of the message, field of Thresholds; durations first.
TIMES = {
    "cooldown": "cooldown_s",
    "account_cooldown": "account_cooldown_s",
    "capacity_cooldown": "capacity_cooldown_s",
    "escalation_window": "escalation_window_s",
    "window": "window_s",
}
FIGURES = (
    "connect_failures", "consecutive_failures", "capacity_failures", "escalation_supplies", "failure_rate",
    "failure_rate_min", "degraded_rate", "degraded_failures", "degraded_successes",
)  # fmt: skip


def subject_from_proto(message: subject_pb2.Subject, at: str) -> Subject:
    """The subject at JSON pointer `at`. Fault `validation_failed` unless it names a Channel or a Supply."""
    if message.kind not in KINDS:
        raise Fault.invalid((f"{at}/kind", "must be CHANNEL or SUPPLY"))
    if not message.id:
        raise Fault.invalid((f"{at}/id", "is required"))
    return Subject(KINDS[message.kind], message.id)


def subject_to_proto(subject: Subject) -> subject_pb2.Subject:
    """The message of a subject."""
    return subject_pb2.Subject(kind=KIND_NUMBERS[subject.kind], id=subject.id)


def state_from_proto(number: pb.HealthState.ValueType) -> State:
    """The state. Fault `validation_failed` for an unset or unknown one."""
    if number not in STATES:
        raise Fault.invalid(("/state", "is not a state"))
    return STATES[number]


def outcome_from_proto(message: pb.Outcome) -> Outcome:
    """The outcome. Fault `validation_failed` naming every required field that is missing."""
    texts = ("attempt_id", "channel_id", "supply_id")
    missing = [name for name in texts if not getattr(message, name)]
    missing += [name for name in ("observe_time", "dispatch_time") if not message.HasField(name)]
    if missing:
        raise Fault.invalid(*((f"/outcome/{name}", "is required") for name in missing))
    return Outcome(
        attempt_id=message.attempt_id,
        channel_id=message.channel_id,
        supply_id=message.supply_id,
        channel_epoch=message.channel_epoch,
        supply_epoch=message.supply_epoch,
        failure=_failed(message) if message.HasField("failure") else None,
        observed_at=_time(message.observe_time),
        dispatched_at=_time(message.dispatch_time),
    )


def _failed(message: pb.Outcome) -> Failed:
    fault = failure_from_proto(message.failure)
    if not fault.code:
        raise Fault.invalid(("/outcome/failure/code", "is required"))
    after = fault.retry_after_ms
    return Failed(fault.category, fault.scope, fault.code, None if after is None else after / 1000)


def target_from_proto(message: pb.Target, index: int) -> Target:
    """The n-th target of a request. Fault `validation_failed` for a figure that cannot work."""
    subject = subject_from_proto(message.subject, f"/targets/{index}/subject")
    try:
        thresholds = thresholds_from_proto(message.thresholds)
    except ValueError as error:
        raise Fault.invalid((f"/targets/{index}/thresholds", str(error))) from error
    channel_id = message.channel_id if subject.kind is Kind.SUPPLY else subject.id
    return Target(subject, channel_id, message.configured_concurrency, message.disabled, thresholds)


def thresholds_from_proto(message: pb.Thresholds) -> Thresholds:
    """The figures in force: what the message does not say has its default. ValueError for one that cannot work."""
    said: dict[str, Any] = {
        ours: getattr(message, theirs).ToTimedelta().total_seconds()
        for theirs, ours in TIMES.items()
        if message.HasField(theirs)  # type: ignore[arg-type]  # the stub wants a literal name
    }
    said |= {name: getattr(message, name) for name in FIGURES if message.HasField(name)}  # type: ignore[arg-type]  # as above
    return Thresholds.of(**said)


def view_to_proto(view: View) -> pb.SubjectHealth:
    """One subject's health."""
    health, rates = view.breaker.health, view.rates
    return pb.SubjectHealth(
        subject=subject_to_proto(view.subject),
        state=STATE_NUMBERS[health.state],
        epoch=health.epoch,
        revision=health.revision,
        recovery_successes=health.recovery_successes,
        configured_concurrency=view.breaker.configured,
        effective_concurrency=view.breaker.allowed,
        since_time=stamp_of(health.since),
        cooldown_until_time=stamp_of(health.cooldown_until) if health.cooldown_until else None,
        success_rate=rates.success_rate,
        success_rate_low=rates.low,
        success_rate_high=rates.high,
        samples=rates.samples,
        reason=health.reason,
    )


def snapshot_to_proto(snapshot: Snapshot) -> service_pb.GetSnapshotResponse:
    """A whole snapshot."""
    subjects = [view_to_proto(view) for view in snapshot.views]
    return service_pb.GetSnapshotResponse(subjects=subjects, snapshot_time=stamp_of(snapshot.taken_at))


def changes_to_proto(snapshot: Snapshot) -> service_pb.WatchSnapshotResponse:
    """What a watcher is told."""
    subjects = [view_to_proto(view) for view in snapshot.views]
    return service_pb.WatchSnapshotResponse(subjects=subjects, snapshot_time=stamp_of(snapshot.taken_at))


def event_to_proto(recorded: Recorded) -> pb.HealthEvent:
    """One event of a subject's history."""
    event = recorded.event
    return pb.HealthEvent(
        sequence=recorded.sequence,
        subject=subject_to_proto(recorded.subject),
        kind=event.kind,
        from_state=STATE_NUMBERS[event.before] if event.before else pb.HEALTH_STATE_UNSPECIFIED,
        to_state=STATE_NUMBERS[event.after],
        epoch=event.epoch,
        recovery_successes=event.recovery_successes,
        reason=event.reason,
        attempt_id=event.attempt_id,
        observe_time=stamp_of(event.at),
    )


def moment_from_proto(message: service_pb.ExplainStateRequest) -> Moment:
    """The moment asked about; without one it is now."""
    if message.HasField("revision"):
        if message.revision < 1:
            raise Fault.invalid(("/revision", "must be at least 1"))
        return Moment(revision=message.revision)
    return Moment(at=_time(message.at_time, "/at_time")) if message.HasField("at_time") else Moment()


def explained_to_proto(explained: Explained) -> service_pb.ExplainStateResponse:
    """A subject's past."""
    health = explained.health
    past = pb.PastHealth(
        subject=subject_to_proto(explained.subject),
        state=STATE_NUMBERS[health.state],
        epoch=health.epoch,
        revision=health.revision,
        recovery_successes=health.recovery_successes,
        since_time=stamp_of(health.since),
        cooldown_until_time=stamp_of(health.cooldown_until) if health.cooldown_until else None,
        reason=health.reason,
    )
    events = [event_to_proto(recorded) for recorded in explained.events]
    return service_pb.ExplainStateResponse(health=past, cause=event_to_proto(explained.cause), events=events)


def breaches_to_proto(breaches: Mapping[Subject, str]) -> service_pb.ListBreachesResponse:
    """What the running check found."""
    found = [
        pb.HistoryBreach(subject=subject_to_proto(subject), description=text)
        for subject, text in sorted(breaches.items())
    ]
    return service_pb.ListBreachesResponse(breaches=found)


def reported_to_proto(reported: Reported) -> service_pb.ReportOutcomeResponse:
    """What an outcome did."""
    events = [event_to_proto(recorded) for recorded in reported.events]
    return service_pb.ReportOutcomeResponse(recorded=reported.recorded, events=events)


def _time(message: Timestamp, at: str = "/outcome") -> datetime:
    try:
        return moment_of(message)
    except ValueError as error:
        raise Fault.invalid((at, "a time is out of range")) from error

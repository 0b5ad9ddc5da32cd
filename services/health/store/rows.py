"""Rows to records and back. Total in both directions."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from services.health.domain.breaker import Breaker
from services.health.domain.events import Event, Health
from services.health.domain.observations import Family, Outcome
from services.health.domain.states import State
from services.health.domain.statistics import Slot
from services.health.domain.subjects import Kind, Subject
from services.health.domain.tally import Sighting, Tally
from services.health.domain.thresholds import Thresholds
from services.health.ports import Record, Recorded
from services.health.store.tables import outcome as outcome_table


def record_of(kind: Kind, row: Mapping[Any, Any]) -> Record:
    """The record of a row of `channel_health` or `supply_health`."""
    health = Health(
        state=State(row["state"]),
        epoch=row["epoch"],
        revision=row["revision"],
        since=row["since"],
        cooldown_until=row["cooldown_until"],
        recovery_successes=row["recovery_successes"],
        reason=row["reason"],
    )
    breaker = Breaker(kind, row["configured"], Thresholds(**row["thresholds"]), health, tally_of(row["tally"]))
    subject = Subject(kind, row["id"])
    return Record(subject, row["channel_id"], breaker, row["disabled"], row["retired"], row["sequence"])


def row_of(record: Record) -> dict[str, Any]:
    """The inverse of `record_of`, without the primary key."""
    breaker = record.breaker
    return {
        "channel_id": record.channel_id,
        "configured": breaker.configured,
        "thresholds": asdict(breaker.thresholds),
        "disabled": record.disabled,
        "retired": record.retired,
        **asdict(breaker.health),
        "state": breaker.health.state.value,
        "tally": tally_json(breaker.tally),
        "sequence": record.sequence,
    }


def tally_json(tally: Tally) -> dict[str, Any]:
    """Short keys: this is written with every outcome."""
    return {
        "s": tally.successes,
        "f": tally.failures,
        "k": tally.family.value if tally.family else None,
        "n": tally.family_failures,
        "w": [[slot.number, slot.good, slot.bad] for slot in tally.window],
        "x": [[seen.supply_id, seen.code, seen.at.isoformat()] for seen in tally.sightings],
    }


def tally_of(value: Mapping[str, Any]) -> Tally:
    """The inverse of `tally_json`."""
    return Tally(
        successes=value["s"],
        failures=value["f"],
        family=Family(value["k"]) if value["k"] else None,
        family_failures=value["n"],
        window=tuple(Slot(*slot) for slot in value["w"]),
        sightings=tuple(Sighting(supply, code, datetime.fromisoformat(at)) for supply, code, at in value["x"]),
    )


def event_row(subject: Subject, sequence: int, event: Event) -> dict[str, Any]:
    """The row of an event."""
    return {
        **asdict(event),
        "before": event.before.value if event.before else None,
        "after": event.after.value,
        "subject_kind": subject.kind.value,
        "subject_id": subject.id,
        "sequence": sequence,
    }


def recorded_of(row: Mapping[Any, Any]) -> Recorded:
    """The stored event of a row."""
    event = Event(
        kind=row["kind"],
        before=State(row["before"]) if row["before"] else None,
        after=State(row["after"]),
        epoch=row["epoch"],
        revision=row["revision"],
        recovery_successes=row["recovery_successes"],
        reason=row["reason"],
        attempt_id=row["attempt_id"],
        at=row["at"],
        cooldown_until=row["cooldown_until"],
    )
    return Recorded(row["position"], Subject(Kind(row["subject_kind"]), row["subject_id"]), row["sequence"], event)


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """The row of an outcome; without a code it was a success."""
    return dict(zip(_OUTCOME, outcome_values(outcome), strict=True))


def outcome_values(outcome: Outcome) -> tuple[Any, ...]:
    """The same without names, in the order of the columns."""
    failure = outcome.failure
    return (
        outcome.attempt_id,
        outcome.channel_id,
        outcome.supply_id,
        outcome.channel_epoch,
        outcome.supply_epoch,
        failure.category.value if failure else None,
        failure.scope.value if failure else None,
        failure.code if failure else None,
        failure.retry_after_s if failure else None,
        outcome.observed_at,
        outcome.dispatched_at,
    )


_OUTCOME = tuple(column.name for column in outcome_table.c)

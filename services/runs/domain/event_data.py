"""Values in the data of events and back: JSON on the outside, our own values inside. Total in both directions."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from libs.kernel.canonical import plain
from libs.kernel.money import Money
from services.runs.domain.run import Artifact, Decision, Failure, Question, Result

Data = Mapping[str, Any]


def money(value: Data | None) -> Money | None:
    """`{"currency", "amount"}`, or None."""
    return Money(value["currency"], Decimal(value["amount"])) if value else None


def money_json(value: Money | None) -> dict[str, str] | None:
    """The inverse of `money`, exact: every digit stays, but for zeros beyond two decimals."""
    if value is None:
        return None
    whole, _, part = format(value.amount, "f").partition(".")
    return {"currency": value.currency, "amount": f"{whole}.{part.rstrip('0'):0<2}"}


def time(value: str | datetime | None) -> datetime | None:
    """RFC 3339 text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def failure(value: Data | None) -> Failure | None:
    """The fields of a Failure, or None."""
    return Failure(**value) if value else None


def artifacts(values: Iterable[Data]) -> tuple[Artifact, ...]:
    """The fields of Artifacts; others beside them are left out."""
    return tuple(Artifact(value["sha256"], value["media_type"], value["size_bytes"]) for value in values)


def result(value: Data, made: tuple[Artifact, ...]) -> Result:
    """What `node_completed` tells, with the artifacts that were written before."""
    return Result(
        made,
        value.get("output") or {},
        bool(value.get("degraded")),
        value.get("requested_profile") or "",
        value.get("actual_profile") or "",
        tuple(value.get("dropped_inputs") or ()),
    )


def result_json(value: Result) -> dict[str, Any]:
    """The inverse of `result`: artifacts are named by digest, having been told before."""
    told: dict[str, Any] = {
        "artifacts": [artifact.sha256 for artifact in value.artifacts],
        "output": plain(value.output),
    }
    if value.requested_profile:
        told |= {"requested_profile": value.requested_profile, "actual_profile": value.actual_profile}
    if value.degraded:
        told |= {"degraded": True, "dropped_inputs": list(value.dropped_inputs)}
    return told


def question(value: Data) -> Question:
    """The fields of a Question."""
    return Question(
        **{
            **value,
            "decisions": tuple(Decision(name) for name in value["decisions"]),
            "deadline": time(value["deadline"]),
            "opened_at": time(value["opened_at"]),
            "claimed_at": time(value.get("claimed_at")),
            "subjects": tuple(value["subjects"]),
            "artifacts": artifacts(value["artifacts"]),
            "failures": tuple(Failure(**item) for item in value["failures"]),
            "remedies": tuple(value["remedies"]),
            "spent": money(value["spent"]),
        }
    )

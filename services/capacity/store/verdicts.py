"""What the scripts of the backends are asked and how their answers become those of the domain.

A script decides and says which outcome it was, with figures; every word of a fault is the domain's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from libs.faults.fault import Fault
from services.capacity.domain import ledger
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Subject
from services.capacity.domain.pacing import FREEZE_MAX, Feedback

MICROSECOND = timedelta(microseconds=1)


class Return(NamedTuple):
    """One release as asked for."""

    lease_id: str
    holder: str
    used_tokens: int | None
    feedback: Feedback

    @property
    def settles(self) -> bool:
        """True where it may change more than the lease: windows or pace."""
        return self.used_tokens is not None or self.feedback.outcome != 0


@dataclass(frozen=True, slots=True)
class Known:
    """The id is taken: the lease itself says what the answer is."""


KNOWN = Known()


def reserve_to_script(nth: int, request: Request) -> dict[str, Any]:
    """A reservation as the scripts read it; times in microseconds."""
    return {
        "nth": nth,
        "id": request.lease_id,
        "holder": request.holder,
        "kind": request.kind,
        "channel": request.channel_id,
        "supply": request.supply_id,
        "tokens": request.tokens,
        "ttl": request.ttl // MICROSECOND,
        "views": [*_view(request.channel_health), *_view(request.supply_health)],
    }


def release_to_script(nth: int, back: Return) -> dict[str, Any]:
    """A release as the scripts read it."""
    return {
        "nth": nth,
        "id": back.lease_id,
        "holder": back.holder,
        "used": back.used_tokens,
        "outcome": int(back.feedback.outcome),
        "retry": min(back.feedback.retry_after, FREEZE_MAX) // MICROSECOND,
    }


def reserved(request: Request, verdict: Mapping[str, Any], at: datetime | None) -> Lease | Refusal | Fault | Known:
    """The answer to a reservation. `at` is when it was decided, or for a refusal when to retry."""
    outcome = verdict["outcome"]
    if outcome == "admitted":
        assert at is not None, "an admission has a time"
        return lease_of(request, at)
    if outcome == "known":
        return KNOWN
    if outcome == "misplaced":
        return ledger.misplaced(request)
    subject = Subject(Kind(verdict["kind"]), verdict["id"])
    if outcome == "undeclared":
        return ledger.undeclared(subject)
    if outcome == "too_large":
        return ledger.too_large(subject, int(verdict["bound"]))
    return Refusal(subject, Gate(verdict["gate"]), int(verdict["bound"]), int(verdict["used"]), at)


def _view(health: HealthLimit) -> tuple[int, int, int | None]:
    return health.epoch, health.revision, health.limit

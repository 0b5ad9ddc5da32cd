"""What a Supply's regression set has shown, and whether that still is evidence (CAT-7). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from libs.kernel.money import Money
from services.routing.domain.catalog import Supply


class VerificationState(StrEnum):
    """Where a verification stands; only one that has ended says anything."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """One request of the set, what was expected, and once it has ended what it lacked and cost. A Task carries it, or a
    synchronous call where the kind is answered while the caller waits."""

    name: str
    task_id: str
    input: Mapping[str, Any]
    expect: Mapping[str, Any]
    state: VerificationState = VerificationState.RUNNING
    reasons: tuple[str, ...] = ()
    cost: Money | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """A run of the set against what the Supply was when it began: its upstream model and capability version."""

    id: str
    supply: str
    upstream_model: str
    capability_version: int
    started_at: datetime
    state: VerificationState = VerificationState.RUNNING
    trials: tuple[Trial, ...] = ()
    finished_at: datetime | None = field(default=None)

    def cost(self) -> Money | None:
        """What its requests have cost together; None while none has ended."""
        costs = [trial.cost for trial in self.trials if trial.cost is not None]
        return sum(costs[1:], costs[0]) if costs else None

    def settled(self, trials: tuple[Trial, ...], now: datetime) -> "Verification":
        """With what has come of its trials by now; ended with the last of them, passed if all of them have."""
        if any(trial.state is VerificationState.RUNNING for trial in trials):
            return replace(self, trials=trials)
        passed = all(trial.state is VerificationState.PASSED for trial in trials)
        state = VerificationState.PASSED if passed else VerificationState.FAILED
        return replace(self, trials=trials, state=state, finished_at=now)

    def is_about(self, supply: Supply) -> bool:
        """Whether it was made with what the Supply is now."""
        made = (self.upstream_model, self.capability_version)
        return made == (supply.upstream_model, supply.capability_version)


def lacking_evidence(supply: Supply, newest: Verification | None) -> str:
    """Why there is no evidence for a Supply; "" where there is. `newest` is its newest verification that has ended."""
    if supply.evidence:
        return ""
    if newest is None:
        return "has none"
    if not newest.is_about(supply):
        if newest.capability_version != supply.capability_version:
            versions = f"{newest.capability_version}, the supply is at {supply.capability_version}"
            return f"has that of capability version {versions}"
        return f"has that of upstream model {newest.upstream_model!r}"
    if newest.state is not VerificationState.PASSED:
        failed = [f"{trial.name}: {reason}" for trial in newest.trials for reason in trial.reasons]
        return f"failed its verification ({'; '.join(failed)})"
    return ""


def evidence_words(supply: Supply, newest: Verification | None) -> str:
    """How a Supply stands, for a person: `waived: …`, `verified …`, or what it lacks."""
    if supply.evidence:
        return f"{supply.evidence}: {supply.evidence_reason}"
    lacking = lacking_evidence(supply, newest)
    if lacking or newest is None or newest.finished_at is None:
        return {"has none": "none"}.get(lacking, lacking.removeprefix("has "))
    return f"verified {newest.finished_at:%Y-%m-%d %H:%M} UTC, capability version {newest.capability_version}"

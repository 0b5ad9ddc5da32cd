"""What an Attempt that has ended tells capacity of its provider's pace and of its tokens (CAP-6, CAP-7). Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from services.routing.domain.task import Attempt, AttemptState


class Pace(StrEnum):
    """How the provider took the work."""

    UNSAID = "unsaid"
    SUCCEEDED = "succeeded"
    CONGESTED = "congested"


class Feedback(Struct, frozen=True):
    """`retry_after_ms` counts with CONGESTED alone: the provider has said when. `used_tokens` None = not known."""

    pace: Pace = Pace.UNSAID
    retry_after_ms: int = 0
    used_tokens: int | None = None


SILENT = Feedback()


def feedback_of(attempt: Attempt, usage: Mapping[str, Any]) -> Feedback:
    """What the end of `attempt` says; `usage` is what the provider counted, empty where there is no result.

    Only a provider that was asked can be congested: a refusal of our own, of which no byte left, says nothing of it.
    """
    if attempt.state is AttemptState.SUCCEEDED:
        return Feedback(Pace.SUCCEEDED, used_tokens=_tokens(usage))
    failure = attempt.failure
    if attempt.state is AttemptState.FAILED and attempt.counted and failure and failure.category == "capacity":
        return Feedback(Pace.CONGESTED, failure.retry_after_ms or 0)
    return SILENT


def _tokens(usage: Mapping[str, Any]) -> int | None:
    """The sum that the provider names, else the sum of what it names; None where it counts no tokens."""
    total = _count(usage.get("total_tokens"))
    if total is not None:
        return total
    parts = [count for name in _PARTS if (count := _count(usage.get(name))) is not None]
    return sum(parts) if parts else None


_PARTS = ("input_tokens", "output_tokens", "completion_tokens")


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return None
    return int(value)

"""What may be repeated, and after how long (CLIENT-1). Pure: chance and time are arguments.

Laws of this file:
- deterministic refusals (schema, permission, content, conflict) are never repeated, whatever their status family;
- Retry-After is a lower bound; one that exceeds the time that is left ends the waiting at once;
- what is not safe to repeat is repeated only where the fault proves that nothing was made.
"""

from dataclasses import dataclass
from enum import Enum

from libs.client.faults import PointsmanError, Problem, Unreachable

TEMPORARY = frozenset({429, 502, 503, 504})
NOTHING_WAS_MADE = frozenset(
    "quota_full capacity_exhausted quota_exceeded rate_limited circuit_open_all governance_backend_down"
    " overloaded".split()
)
"""Codes of those who are turned away: nobody had room, or nobody was asked."""


class Safety(Enum):
    """What a second sending of the same request does."""

    SAFE = "safe"
    """Nothing more: reads, and creates under an Idempotency-Key or a digest."""
    UNSAFE = "unsafe"
    """It may make, and charge, the same thing again."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a caller goes on. `tries` counts the first one; `total_s` bounds everything, waiting included."""

    tries: int = 6
    first_s: float = 0.25
    longest_s: float = 10.0
    total_s: float = 120.0

    def __post_init__(self) -> None:
        if self.tries < 1 or min(self.first_s, self.longest_s, self.total_s) <= 0:
            raise ValueError("patience wants at least one try and times above 0")


NO_PATIENCE = Patience(tries=1)


def repeatable(error: PointsmanError, safety: Safety) -> bool:
    """Whether sending the same request again is allowed and of use."""
    if isinstance(error, Unreachable):
        return safety is Safety.SAFE or not error.sent
    if not isinstance(error, Problem):
        return False
    if safety is Safety.UNSAFE:
        return error.code in NOTHING_WAS_MADE and error.status in TEMPORARY
    if error.status in TEMPORARY:
        return True
    return error.retryable and error.status not in (400, 401, 403, 404, 422, 500)


def pause_s(patience: Patience, tried: int, spent_s: float, error: PointsmanError, chance: float) -> float | None:
    """Seconds to wait after the `tried`-th try failed, None to give up. `chance` lies in [0, 1).

    Exponential with full jitter, and never before Retry-After.
    """
    if tried >= patience.tries:
        return None
    ceiling = min(patience.longest_s, patience.first_s * 2.0 ** min(tried - 1, 32))
    wait = chance * ceiling
    if isinstance(error, Problem) and error.retry_after_s is not None:
        wait += error.retry_after_s  # jitter behind it, so that not everybody comes at that moment
    return wait if spent_s + wait < patience.total_s else None

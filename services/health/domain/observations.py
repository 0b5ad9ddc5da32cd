"""What a breaker may observe, and how one outcome of an Attempt is dealt to its Channel and its Supply.

Laws of this file:
- a content or request failure, an unknown outcome and our own refusals are observed by nobody (HLT-5);
- a failure bears on the Channel or on the Supply, never on both: neither stands in for the other;
- a Channel also *hears* of its Supplies' failures, for escalation only; that changes no streak of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from libs.faults.registry import Category, Scope
from services.health.domain.events import RESIZED
from services.health.domain.states import Signal
from services.health.domain.thresholds import Thresholds


class Family(StrEnum):
    """Failures that share a threshold. Two of one family are in a row when no other family's failure is between."""

    ACCOUNT = "account"
    CONNECT = "connect"
    MODEL = "model"
    SERVER = "server"
    CAPACITY = "capacity"


FAMILY_OF_CODE: Mapping[str, Family] = MappingProxyType(
    {
        "key_invalid": Family.ACCOUNT,
        "account_forbidden": Family.ACCOUNT,
        "balance_exhausted": Family.ACCOUNT,
        "connect_failed": Family.CONNECT,
        "model_unavailable": Family.MODEL,
    }
)

# Refusals of our own machinery: they say nothing of the provider.
OWN_CODES = frozenset({"capacity_exhausted", "supply_unavailable", "no_candidates", "quota_exceeded", "overloaded"})


@dataclass(frozen=True, slots=True)
class Failed:
    """The failure of an Attempt, as far as health cares. `retry_after_s` is None where the provider said nothing."""

    category: Category
    scope: Scope
    code: str
    retry_after_s: float | None = None


class Outcome(Struct, frozen=True):
    """The one end of an Attempt (HLT-13): its first infrastructure failure or its final success (`failure` None).

    The epochs are those at dispatch.
    """

    attempt_id: str
    channel_id: str
    supply_id: str
    channel_epoch: int
    supply_epoch: int
    failure: Failed | None
    observed_at: datetime
    dispatched_at: datetime


class Success(Struct, frozen=True):
    """An Attempt ended well; it was dispatched in `epoch` of this subject."""

    attempt_id: str
    epoch: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """An Attempt failed with impact on this subject."""

    attempt_id: str
    at: datetime
    code: str
    family: Family
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class SupplyFailure:
    """A Channel hears that one of its Supplies failed."""

    attempt_id: str
    supply_id: str
    at: datetime
    code: str


@dataclass(frozen=True, slots=True)
class CooldownOver:
    """Somebody looked at the clock."""


@dataclass(frozen=True, slots=True)
class Command:
    """An operator's word: one of FORCED_OPEN, SWITCHED_OFF, SWITCHED_ON."""

    signal: Signal
    reason: str


@dataclass(frozen=True, slots=True)
class Declared:
    """The catalogue's word: configured slots (0 = no gate) and thresholds.

    `kind` is the event it writes: RESIZED (only where the slots changed), RETIRED when the catalogue names the
    subject no more, DECLARED when it names it again.
    """

    configured: int
    thresholds: Thresholds
    kind: str = RESIZED


Observation = Success | Failure | SupplyFailure | CooldownOver | Command | Declared


def family(failed: Failed) -> Family | None:
    """The family of a failure, or None where it has no impact on health (the last column of the ERR table).

    A code from a later release is judged by category and scope alone: on a Channel as a failure to connect (it must
    repeat to open), on a Supply as a provider's error.
    """
    if failed.category not in (Category.SUPPLY, Category.CAPACITY) or failed.code in OWN_CODES:
        return None
    if failed.scope is Scope.CHANNEL:
        return FAMILY_OF_CODE.get(failed.code, Family.CONNECT)
    if failed.scope is Scope.SUPPLY:
        if failed.category is Category.CAPACITY:
            return Family.CAPACITY
        return FAMILY_OF_CODE.get(failed.code, Family.SERVER)
    return None


def dealt(outcome: Outcome) -> tuple[Observation | None, Observation | None]:
    """What the Channel and what the Supply observe of an outcome; None = nothing."""
    failed, attempt, at = outcome.failure, outcome.attempt_id, outcome.observed_at
    if failed is None:
        return Success(attempt, outcome.channel_epoch, at), Success(attempt, outcome.supply_epoch, at)
    kin = family(failed)
    if kin is None:
        return None, None
    failure = Failure(attempt, at, failed.code, kin, failed.retry_after_s)
    if failed.scope is Scope.CHANNEL:
        return failure, None
    # "Full" is not "broken": a rate limit on two Supplies does not close their account.
    heard = None if kin is Family.CAPACITY else SupplyFailure(attempt, outcome.supply_id, at, failed.code)
    return heard, failure

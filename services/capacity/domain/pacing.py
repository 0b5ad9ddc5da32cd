"""Adaptive pacing of a Supply (AIMD): what its provider's answers say about how much it takes. Pure.

Laws of this file:
- a provider that says "too much" halts growth and cuts once a congestion epoch: only work that began after the last
  cut can cut again, so twenty refusals of one burst are one cut (CAP-7);
- an answer that names a time freezes until then and cuts nothing: the provider has said when, not how much;
- success raises slowly, one slot for as many successes as there are slots, and only while the slots are in use: who
  asks for little proves nothing about much;
- whole numbers only, so that every backend reckons alike: a limit is kept in thousandths of a slot.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum

from msgspec import Struct

SLOT = 1000  # the unit of a limit
KEPT_TENTHS = 7  # a cut leaves seven tenths of what was in use
FREEZE_MAX = timedelta(hours=1)


class Outcome(IntEnum):
    """What the provider's answer said about pace. The numbers are the contract with the scripts of the backends."""

    UNSAID = 0
    SUCCEEDED = 1
    CONGESTED = 2


class Feedback(Struct, frozen=True):
    """How the work ended; `retry_after` counts with CONGESTED alone and runs from the release."""

    outcome: Outcome = Outcome.UNSAID
    retry_after: timedelta = timedelta(0)


SILENT = Feedback()


@dataclass(frozen=True, slots=True)
class Pace:
    """The adaptive state of a level. `limit` is in thousandths of a slot, None = none; `ceiling` in slots.

    `ceiling` is where a limit is lifted on a level without a concurrency gate. `cut_at` begins the congestion epoch.
    """

    limit: int | None = None
    ceiling: int = 0
    cut_at: datetime | None = None
    frozen_until: datetime | None = None

    @property
    def slots(self) -> int | None:
        """Whole slots that the adaptive limit admits, at least one; None where there is no such limit."""
        return None if self.limit is None else self.limit // SLOT

    def frozen(self, now: datetime) -> bool:
        """True while the provider has asked not to be asked."""
        return self.frozen_until is not None and now < self.frozen_until


UNPACED = Pace()


def told(pace: Pace, feedback: Feedback, reserved_at: datetime, now: datetime, in_use: int, concurrency: int) -> Pace:
    """The pace after one release. `in_use` counts the lease that is being given back; `concurrency` 0 = no gate."""
    if feedback.outcome is Outcome.CONGESTED and feedback.retry_after > timedelta(0):
        return frozen(pace, now + min(feedback.retry_after, FREEZE_MAX))
    if feedback.outcome is Outcome.UNSAID or (pace.cut_at is not None and reserved_at <= pace.cut_at):
        return pace
    if feedback.outcome is Outcome.CONGESTED:
        return cut(pace, now, in_use, concurrency)
    return raised(pace, in_use, concurrency)


def frozen(pace: Pace, until: datetime) -> Pace:
    """No admission until then; a freeze is never shortened."""
    later = until if pace.frozen_until is None else max(until, pace.frozen_until)
    return replace(pace, frozen_until=later)


def cut(pace: Pace, now: datetime, in_use: int, concurrency: int) -> Pace:
    """Begin a congestion epoch with seven tenths of the slots that were in use or admitted, at least one."""
    bounds = [in_use * SLOT]
    if pace.limit is not None:
        bounds.append(pace.limit)
    if concurrency:
        bounds.append(concurrency * SLOT)
    limit = max(SLOT, min(bounds) * KEPT_TENTHS // 10)
    return replace(pace, limit=limit, ceiling=max(pace.ceiling, in_use), cut_at=now)


def raised(pace: Pace, in_use: int, concurrency: int) -> Pace:
    """One success's share of a slot, unless less than half of the slots was in use; no limit once it is all back."""
    if pace.limit is None or in_use * SLOT * 2 < pace.limit:
        return pace
    limit = pace.limit + max(1, SLOT * SLOT // pace.limit)
    if limit >= (concurrency or pace.ceiling) * SLOT:
        return replace(pace, limit=None, ceiling=0)
    return replace(pace, limit=limit)

"""What follows from the end of an Attempt, and when to look again. Pure: `now` and chance come in as arguments.

Laws of this file (ATT-1..4, 6):
- a switch needs category `supply` or `capacity`, `retryable`, an Attempt left, and the window for new Attempts open;
- whatever else failed ends the Task;
- an unknown outcome is never a failure: it has its own schedule and its own end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.catalog import Policy
from services.routing.domain.task import Attempt, AttemptState, Failure, Task

SWITCHING = frozenset({"supply", "capacity"})
SAME_SUPPLY_PAUSE_S = 1.0
UNSENT_PAUSE_S = 1.0
LONGEST_UNSENT_PAUSE_S = 60.0
FIRST_LOOK_S = 2.0
"""An uncertain submission is looked up first after this long: reconciliation begins within 5 s (ATT-6)."""
LONGEST_LOOK_S = 60.0
LONGEST_POLL_S = 60.0


@dataclass(frozen=True, slots=True)
class Again:
    """Another Attempt may follow, after that pause."""

    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Final:
    """The Task ends with this fault."""

    failure: Failure


def fault(code: str, message: str, category: str, scope: str = "request", retryable: bool = False) -> Failure:
    """A failure in Routing's own words."""
    return Failure(category=category, scope=scope, retryable=retryable, code=code, message=message)


def window_end(task: Task, policy: Policy) -> datetime:
    """No new Attempt starts after this (ATT-3)."""
    return task.created_at + timedelta(seconds=policy.new_attempt_window_s)


def last_start(task: Task, policy: Policy) -> datetime:
    """No new Attempt starts at this moment or later: the window's end, or the Task's deadline if that comes first."""
    end = window_end(task, policy)
    return min(end, task.request.deadline) if task.request.deadline else end


def counted(task: Task) -> int:
    """Attempts that count against `max_attempts`."""
    return sum(1 for attempt in task.attempts if attempt.counted)


def used_up(task: Task, policy: Policy) -> bool:
    """Whether every Attempt that the policy and the Task's own terms permit was made (ATT-1)."""
    return counted(task) >= task.request.attempts_within(policy.max_attempts)


def after_failure(task: Task, policy: Policy, failure: Failure, now: datetime) -> Again | Final:
    """Whether another Attempt may follow one that ended with `failure` (ATT-1..3)."""
    if failure.category not in SWITCHING or not failure.retryable or used_up(task, policy):
        return Final(failure)
    if now >= window_end(task, policy):
        return Final(failure)
    return Again()


def after_not_accepted(task: Task, policy: Policy, failure: Failure, now: datetime) -> Again | Final:
    """Whether another Attempt may follow a submission that surely was not taken (ATT-6)."""
    if used_up(task, policy) or now >= window_end(task, policy):
        return Final(failure)
    return Again()


def after_unsent(task: Task, failure: Failure) -> Again:
    """What follows an Attempt of which no byte left. It does not count, so the pauses, which double, are the bound."""
    unsent = sum(1 for attempt in task.attempts if not attempt.counted)
    pause_s = min(UNSENT_PAUSE_S * 2.0 ** min(unsent - 1, 16), LONGEST_UNSENT_PAUSE_S)
    return Again(max(pause_s, (failure.retry_after_ms or 0) / 1000))


def held_until(task: Task, supply: str) -> datetime | None:
    """Before this, that Supply is not tried again: its Retry-After, or a short pause (ATT-3a)."""
    last = next((item for item in reversed(task.attempts) if item.supply == supply and item.counted), None)
    if last is None or last.finished_at is None:
        return None
    retry_ms = last.failure.retry_after_ms if last.failure else None
    pause = SAME_SUPPLY_PAUSE_S if retry_ms is None else retry_ms / 1000
    return last.finished_at + timedelta(seconds=pause)


def window_closed(task: Task) -> Failure:
    """The final fault of a Task whose window for new Attempts ended while it waited."""
    last = next((item for item in reversed(task.attempts) if item.counted and item.failure), None)
    if last is not None and last.failure is not None:
        return last.failure
    reason = task.told_reason or "nothing came free"
    if task.paused:
        text = f"its time for new attempts ended while it was paused ({reason})"
        return fault("supply_unavailable", text, "supply", "supply", True)
    if reason.startswith("capacity"):
        return fault("capacity_exhausted", f"no slot came free in time ({reason})", "capacity", "supply", True)
    if reason.startswith("quota"):
        return fault("quota_exceeded", f"no room in time ({reason})", "capacity", "request", True)
    if reason.startswith("model"):
        return fault("model_not_published", reason, "request")
    return fault("supply_unavailable", f"no supply became available in time ({reason})", "supply", "supply", True)


def cost_of(quote: Money, reported: Money | None, fx: Mapping[str, Decimal]) -> Money:
    """What an Attempt that delivered has cost: what the provider says, in the quote's currency, else the quote.

    A reported currency without a rate cannot be booked; the quote then stands.
    """
    if reported is None:
        return quote
    if reported.currency == quote.currency:
        return reported
    rate = fx.get(reported.currency)
    return quote if rate is None else Money(quote.currency, reported.amount * rate).rounded()


def spent_in(spent: Money, currency: str, fx: Mapping[str, Decimal]) -> Money | None:
    """What a Task has spent, in the currency that the catalogue counts in now; None where no rate is known."""
    if spent.currency == currency or not spent.amount:
        return Money(currency, spent.amount)
    rate = fx.get(spent.currency)
    return None if rate is None else Money(currency, spent.amount * rate).rounded()


def turned_away(attempt: Attempt, failure: Failure) -> bool:
    """Whether it never became a job: refused for its request, the account or want of room, so nothing can be charged.

    Of a 5xx that is not known: the machinery may have worked, and been paid, before it broke.
    """
    refused = failure.category in ("request", "capacity") or failure.scope == "channel"
    return refused and not attempt.provider_task_id


def cost_of_failure(quote: Money, charges_on_failure: bool) -> Money:
    """What a failed Attempt has cost."""
    return quote if charges_on_failure else Money.zero(quote.currency)


def next_poll(
    attempt: Attempt, interval_s: float, retry_after_ms: int | None, now: datetime, chance: float
) -> datetime:
    """When to poll next: the Channel's interval within 10 % of chance, doubled for each failed poll in a row."""
    pause = min(interval_s * 2 ** min(attempt.poll_failures, 10), max(LONGEST_POLL_S, interval_s))
    pause = max(pause * (0.9 + 0.2 * chance), (retry_after_ms or 0) / 1000)
    return now + timedelta(seconds=pause)


def next_look(attempt: Attempt, now: datetime, chance: float) -> datetime:
    """When to ask the provider's records next: 2 s, then growing to 60 s, never past the deadline (ATT-6)."""
    pause = min(FIRST_LOOK_S * 1.7**attempt.reconcile_count, LONGEST_LOOK_S) * (0.9 + 0.1 * chance)
    later = now + timedelta(seconds=pause)
    return min(later, attempt.uncertain_deadline) if attempt.uncertain_deadline else later


def outcome_is_told(attempt: Attempt, state: AttemptState, failure: Failure | None) -> bool:
    """Whether health hears of this end: its final success or its failure, never an end that says nothing (HLT-13)."""
    if state is AttemptState.SUCCEEDED:
        return True
    return state is AttemptState.FAILED and failure is not None and failure.category != "unknown"

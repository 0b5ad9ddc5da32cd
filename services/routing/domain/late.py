"""What a provider says of a job after we had ended its Attempt: a late result is booked and told, never dropped.

Laws of this file (ATT-6, COST-12):
- watched is what ended by our own timeout: an unresolved submission, a job that was given up or could not be stopped
  at its deadline;
- a late word changes neither the Attempt's state nor its Task's: it corrects the cost and stays beside them;
- there is one late word for each Attempt, and the watch has an end.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.attempts import cost_of, cost_of_failure
from services.routing.domain.decision import AlertDraft
from services.routing.domain.task import Artifact, Attempt, Failure, LateWord, Task
from services.routing.domain.transitions import with_attempt

FIRST_LATE_LOOK_S = 60.0
LONGEST_LATE_LOOK_S = 3600.0
WATCHED_S = 24 * 3600.0

Said = tuple[str, Money | None, tuple[Artifact, ...], Failure | None]
"""(outcome, reported cost, artifacts, failure)."""


def first_late_look(now: datetime) -> datetime:
    """When an Attempt that ended now is asked about first."""
    return now + timedelta(seconds=FIRST_LATE_LOOK_S)


def asked_again(attempt: Attempt, now: datetime) -> Attempt:
    """The Attempt with the time of its next look, each pause twice the last; None once it was watched for a day."""
    pause_s = min(FIRST_LATE_LOOK_S * 2.0 ** min(attempt.late_looks + 1, 16), LONGEST_LATE_LOOK_S)
    later = now + timedelta(seconds=pause_s)
    over = attempt.finished_at is None or later > attempt.finished_at + timedelta(seconds=WATCHED_S)
    return replace(attempt, late_looks=attempt.late_looks + 1, late_look_at=None if over else later)


def taken_after_all(attempt: Attempt, provider_task_id: str) -> Attempt:
    """An unresolved submission that the records now have: the quote is booked until its end is known."""
    return replace(attempt, provider_task_id=provider_task_id, resolution="accepted", cost=attempt.quote)


def heard(attempt: Attempt, said: Said, now: datetime, charges_on_failure: bool, fx: Mapping[str, Decimal]) -> Attempt:
    """The Attempt with the provider's later word, its cost corrected, and no further look."""
    outcome, reported, artifacts, failure = said
    if outcome == "not_accepted":
        cost = Money.zero(attempt.quote.currency)
    elif outcome == "succeeded" or reported is not None:
        cost = cost_of(attempt.quote, reported, fx)
    else:
        cost = cost_of_failure(attempt.quote, charges_on_failure)
    word = LateWord(outcome, now, attempt.cost, artifacts, failure)
    resolution = "not_accepted" if outcome == "not_accepted" else attempt.resolution
    return replace(attempt, cost=cost, late=word, late_look_at=None, resolution=resolution)


def booked(task: Task, before: Attempt, after: Attempt) -> Task:
    """The Task with that Attempt in its place and the difference of its cost in what was spent."""
    difference = after.cost if after.cost is not None else Money.zero(after.quote.currency)
    if before.cost is not None:
        difference = difference - before.cost
    spent = task.spent + difference if difference.amount else task.spent
    return replace(with_attempt(task, after), spent=spent)


def late_alerts(attempt: Attempt) -> tuple[AlertDraft, ...]:
    """A late word that costs money is told; the alert of the end, where still open, tells the newer words."""
    if attempt.cost is None or not attempt.cost.amount:
        return ()
    cost = f"{attempt.cost.amount} {attempt.cost.currency}"
    if attempt.late is None:
        text = f"{attempt.supply} has the job of attempt {attempt.id} after all; {cost} is booked until its end"
    else:
        text = (
            f"attempt {attempt.id} at {attempt.supply} {attempt.late.outcome} after we had ended it; {cost} is booked"
        )
    return (AlertDraft("cost_anomaly", "high", attempt.id, text, cause=attempt.task_id),)

"""The story of a Task in sentences, for operators: every round and every Attempt, oldest first."""

from collections.abc import Sequence
from datetime import datetime

from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.domain.selection_record import recorded_decision
from services.routing.domain.task import Attempt, AttemptState, Task


def tell(task: Task, rounds: Sequence[SelectionRound]) -> tuple[str, ...]:
    """A sentence each, in the order of time."""
    events: list[tuple[datetime, int, str]] = [
        (task.created_at, 0, f"The task was taken for model {task.request.model}.")
    ]
    events += [(item.decided_at, 1, _round(item)) for item in rounds]
    for attempt in task.attempts:
        events += [(at, 2, text) for at, text in _attempt(attempt)]
    if task.finished_at is not None:
        because = f": {task.failure.code}, {task.failure.message}" if task.failure else ""
        events.append((task.finished_at, 3, f"The task {task.state}{because}; it cost {_money(task)}."))
    elif reason := task.told_reason:
        events.append((datetime.max.replace(tzinfo=task.created_at.tzinfo), 4, f"It waits now: {reason}."))
    return tuple(text for _, _, text in sorted(events, key=lambda event: event[:2]))


def _round(item: SelectionRound) -> str:
    decision = recorded_decision(item.record)
    if item.outcome is RoundOutcome.RESERVED:
        degraded = f", degraded by {decision.rule}" if decision.rule else ""
        return f"Round {item.round} chose {decision.chosen} of tier {decision.tier}{degraded} and reserved it."
    if item.outcome is RoundOutcome.REFUSED:
        return f"Round {item.round} chose {decision.chosen}, but the reservation was refused: {item.note}."
    if item.outcome is RoundOutcome.WAITING:
        return f"Round {item.round} had nobody to choose: {decision.waiting_reason}."
    return f"Round {item.round} ended without hope: {decision.failure_code}, {decision.failure_message}."


def _attempt(attempt: Attempt) -> list[tuple[datetime, str]]:
    name = f"Attempt {attempt.number} at {attempt.supply}"
    told: list[tuple[datetime, str]] = []
    if attempt.submitted_at is not None:
        told.append((attempt.submitted_at, f"{name} was submitted, quoted at {attempt.quote.amount}."))
    if attempt.accepted_at is not None:
        told.append((attempt.accepted_at, f"{name} was accepted as {attempt.provider_task_id}."))
    if attempt.finished_at is not None:
        because = f": {attempt.failure.code}, {attempt.failure.message}" if attempt.failure else ""
        told.append((attempt.finished_at, f"{name} ended as {attempt.state}{because}."))
        if attempt.late is not None:
            cost = f"{attempt.cost.amount} is booked" if attempt.cost else "nothing is booked"
            told.append((attempt.late.heard_at, f"{name} was heard of late: it {attempt.late.outcome}; {cost}."))
    elif attempt.state is AttemptState.SUBMISSION_UNCERTAIN and attempt.submitted_at is not None:
        told.append((attempt.submitted_at, f"{name} was not answered; its outcome is being found out."))
    return told


def _money(task: Task) -> str:
    return task.spent.words()

"""Every change of a Task or Attempt, as a function from one value to the next.

Laws of this file:
- a state changes only along `TASK_MOVES` and `ATTEMPT_MOVES`; anything else is a bug and raises `IllegalMove`;
- what is terminal never changes state again, and only an operator's or the provider's later word may still correct
  its cost;
- a Task has at most one live Attempt, and money spent only rises but for such a correction.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from libs.kernel.money import Money
from services.routing.domain.task import (
    ATTEMPT_MOVES,
    TASK_MOVES,
    TERMINAL_TASKS,
    Attempt,
    AttemptState,
    Failure,
    Result,
    Task,
    TaskState,
)


class IllegalMove(ValueError):
    """A change that the tables of states do not know."""


def move_task(task: Task, state: TaskState, **changes: Any) -> Task:
    """The Task in `state`; staying where it is needs no move."""
    if state != task.state and state not in TASK_MOVES[task.state]:
        raise IllegalMove(f"task {task.id}: {task.state} -> {state}")
    return replace(task, state=state, **changes)


def move_attempt(attempt: Attempt, state: AttemptState, **changes: Any) -> Attempt:
    """The Attempt in `state`; staying where it is needs no move."""
    if state != attempt.state and state not in ATTEMPT_MOVES[attempt.state]:
        raise IllegalMove(f"attempt {attempt.id}: {attempt.state} -> {state}")
    return replace(attempt, state=state, **changes)


def with_attempt(task: Task, attempt: Attempt) -> Task:
    """The Task with that Attempt in the place of its older self, or at the end if it is new."""
    others = [attempt if item.id == attempt.id else item for item in task.attempts]
    if all(item.id != attempt.id for item in task.attempts):
        if task.live is not None:
            raise IllegalMove(f"task {task.id} has a live attempt already")
        others.append(attempt)
    return replace(task, attempts=tuple(others))


def waiting(task: Task, reason: str, until: datetime) -> Task:
    """Still in its state, with the one current reason and the time of the next look (ATT-10)."""
    return replace(task, waiting_reason=reason, next_action_at=until)


def held(task: Task, until: datetime) -> Task:
    """Paused in the queue: nothing is looked for before the end of its time for new Attempts, which goes on counting.
    Its reason stays what it was, for when it goes on."""
    if task.live is not None:
        raise IllegalMove(f"task {task.id} is not held: attempt {task.live.id} is {task.live.state}")
    return replace(move_task(task, TaskState.QUEUED), paused=True, next_action_at=until)


def submitting(task: Task, attempt: Attempt, now: datetime, uncertain_deadline: datetime) -> Task:
    """The intent to submit: from `reserved` on, nobody but this Attempt's holder may send (ATT-5)."""
    sent = move_attempt(attempt, AttemptState.SUBMITTING, submitted_at=now, uncertain_deadline=uncertain_deadline)
    return replace(with_attempt(move_task(task, TaskState.DISPATCHING), sent), waiting_reason="", next_action_at=now)


def accepted(task: Task, attempt: Attempt, provider_task_id: str, now: datetime, next_poll: datetime) -> Task:
    """A provider has it, under that id."""
    taken = move_attempt(
        attempt, AttemptState.ACCEPTED, provider_task_id=provider_task_id, accepted_at=now, failure=None, counted=True
    )
    moved = with_attempt(move_task(task, TaskState.RUNNING), taken)
    return replace(moved, waiting_reason="", next_action_at=next_poll)


def undoubted(task: Task, now: datetime) -> Task:
    """Nobody has it: it goes on like any other (ATT-6)."""
    return replace(task, doubt=None, waiting_reason="queue: no provider has it from before", next_action_at=now)


def polled(task: Task, attempt: Attempt, running: bool, next_poll: datetime) -> Task:
    """A poll was answered: nothing new but perhaps that the provider has begun."""
    state = AttemptState.RUNNING if running else attempt.state
    heard = move_attempt(attempt, state, poll_failures=0, polls_failing_since=None)
    return replace(with_attempt(task, heard), waiting_reason="", next_action_at=next_poll)


def poll_failed(task: Task, attempt: Attempt, reason: str, now: datetime) -> Task:
    """A poll was not answered: the Attempt stays as it is, only the next poll comes later (HLT-13)."""
    since = attempt.polls_failing_since or now
    unheard = replace(attempt, poll_failures=attempt.poll_failures + 1, polls_failing_since=since)
    return replace(with_attempt(task, unheard), waiting_reason=reason)


def uncertain(
    task: Task, attempt: Attempt, failure: Failure, reason: str, next_look: datetime, silent_since: int | None = None
) -> Task:
    """Nobody knows whether the provider took it (ATT-5, ATT-6)."""
    unknown = move_attempt(attempt, AttemptState.SUBMISSION_UNCERTAIN, failure=failure, silent_since=silent_since)
    return replace(with_attempt(task, unknown), waiting_reason=reason, next_action_at=next_look)


def still_uncertain(
    task: Task, attempt: Attempt, reason: str, next_look: datetime, silent_since: int | None = None
) -> Task:
    """The provider's records were asked and could not tell."""
    asked = replace(attempt, reconcile_count=attempt.reconcile_count + 1, silent_since=silent_since)
    return replace(with_attempt(task, asked), waiting_reason=reason, next_action_at=next_look)


def cancel_tried(task: Task, attempt: Attempt, refused: bool, reason: str, next_look: datetime) -> Task:
    """The provider was asked to stop it and did not: `refused` when it said that it will not."""
    asked = replace(attempt, cancel_tried=attempt.cancel_tried + 1, cancel_refused=refused)
    return replace(with_attempt(task, asked), waiting_reason=reason, next_action_at=next_look)


def attempt_ended(
    task: Task,
    attempt: Attempt,
    state: AttemptState,
    now: datetime,
    *,
    cost: Money | None,
    failure: Failure | None = None,
    report: bool = False,
    counted: bool = True,
    late_look: datetime | None = None,
) -> Task:
    """The Attempt in a terminal state with its cost booked (None: not known); the Task's own state stays.

    `late_look`: it ended by our own timeout, and the provider is asked again then.
    """
    ended = move_attempt(
        attempt,
        state,
        finished_at=now,
        cost=cost,
        failure=failure,
        report_pending=report,
        counted=counted,
        late_look_at=late_look,
    )
    return replace(with_attempt(task, ended), spent=task.spent + cost if cost else task.spent)


def requeued(task: Task, reason: str, not_before: datetime) -> Task:
    """Back in the queue for another Attempt."""
    return replace(move_task(task, TaskState.QUEUED), waiting_reason=reason, next_action_at=not_before)


def succeeded(task: Task, result: Result, now: datetime) -> Task:
    """Ended with a result."""
    return _ended(task, TaskState.SUCCEEDED, now, result=result, failure=None)


def failed(task: Task, failure: Failure, now: datetime) -> Task:
    """Ended without a result; every Attempt and this fault stay visible (ATT-4)."""
    return _ended(task, TaskState.FAILED, now, failure=failure)


def cancelled(task: Task, now: datetime) -> Task:
    """Ended on request."""
    return _ended(task, TaskState.CANCELLED, now)


def _ended(task: Task, state: TaskState, now: datetime, **changes: Any) -> Task:
    if task.live is not None:
        raise IllegalMove(f"task {task.id} cannot end: attempt {task.live.id} is {task.live.state}")
    if task.state in TERMINAL_TASKS:
        raise IllegalMove(f"task {task.id} has ended as {task.state}")
    return move_task(task, state, finished_at=now, waiting_reason="", next_action_at=None, **changes)

"""What is to be done with a Task that somebody just claimed: one rule for each non-terminal state (ATT-7).

A claim is all that a rule may rely on. Whether the Task comes from the queue, from its next poll or from a worker that
died half-way, the state alone says how it goes on, so recovery is no special case. (One thing a state cannot say: what
a database that was put back has forgotten. See `domain.doubt`.)

| Task        | live Attempt           | rule         | why |
|-------------|------------------------|--------------|-----|
| queued      | none                   | SELECT       | nothing was begun |
| dispatching | reserved               | DROP         | nothing was sent: back to the queue, not counted |
| dispatching | submitting             | DOUBT        | its sender is gone and the bytes may have left (ATT-5) |
| dispatching | submission_uncertain   | RECONCILE    | only the provider's records or an operator know (ATT-6) |
| running     | accepted, running      | FOLLOW       | the provider has it, under a known id |
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from services.routing.domain.attempts import window_end
from services.routing.domain.catalog import Policy
from services.routing.domain.task import AttemptState, Task, TaskState


class Rule(StrEnum):
    """How a claimed Task goes on."""

    SELECT = "select"
    DROP = "drop"
    DOUBT = "doubt"
    RECONCILE = "reconcile"
    FOLLOW = "follow"


RECOVERY: Mapping[tuple[TaskState, AttemptState | None], Rule] = {
    (TaskState.QUEUED, None): Rule.SELECT,
    (TaskState.DISPATCHING, AttemptState.RESERVED): Rule.DROP,
    (TaskState.DISPATCHING, AttemptState.SUBMITTING): Rule.DOUBT,
    (TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN): Rule.RECONCILE,
    (TaskState.RUNNING, AttemptState.ACCEPTED): Rule.FOLLOW,
    (TaskState.RUNNING, AttemptState.RUNNING): Rule.FOLLOW,
}


class Step(StrEnum):
    """The next thing to do, with cancel flag, deadlines and windows taken into account."""

    LOOK_BACK = "look_back"
    """A life of the database that was put back may have sent it: ask before anything else."""
    SELECT = "select"
    DROP = "drop"
    DOUBT = "doubt"
    RECONCILE = "reconcile"
    UNRESOLVE = "unresolve"
    """The time for finding out is over."""
    POLL = "poll"
    STOP = "stop"
    """Ask the provider to stop: a cancel was asked for."""
    CANCEL = "cancel"
    """End as cancelled: nothing is at a provider."""
    LATE = "late"
    """The deadline passed in the queue: end as failed `deadline_exceeded`."""
    EXPIRE = "expire"
    """The deadline passed while a provider has the job: stop it and end as failed `deadline_exceeded`."""
    CLOSE = "close"
    """The window for new Attempts is over."""
    HOLD = "hold"
    """It is paused: put it away until its time is over. Deadlines and windows go on counting."""


CANCEL_TRIES = 5


def rule_of(task: Task) -> Rule:
    """The one rule for this state. KeyError for a combination that cannot come about."""
    live = task.live
    return RECOVERY[(task.state, live.state if live else None)]


def next_step(task: Task, policy: Policy, now: datetime) -> Step:
    """What the claimer of `task` does now."""
    rule = rule_of(task)
    late = task.request.deadline is not None and now >= task.request.deadline
    if rule is Rule.DROP:
        return Step.DROP
    if rule is Rule.DOUBT:
        return Step.DOUBT
    if rule is Rule.RECONCILE:
        live = task.live
        over = live is not None and live.uncertain_deadline is not None and now >= live.uncertain_deadline
        return Step.UNRESOLVE if over else Step.RECONCILE
    if rule is Rule.FOLLOW:
        return _follow(task, late)
    if task.doubt is not None:
        return Step.LOOK_BACK
    if task.cancel_requested:
        return Step.CANCEL
    if late:
        return Step.LATE
    if now >= window_end(task, policy):
        return Step.CLOSE
    return Step.HOLD if task.paused else Step.SELECT


def _follow(task: Task, late: bool) -> Step:
    live = task.live
    if late:
        return Step.EXPIRE
    if task.cancel_requested and live is not None and not live.cancel_refused and live.cancel_tried < CANCEL_TRIES:
        return Step.STOP
    return Step.POLL

"""Where open Tasks and live Attempts stand, and what is wrong with where they stand (ATT-6, ATT-7, ATT-10).

Laws of this file:
- a Task that has not ended matches exactly one recovery predicate, and so will be carried on by whoever claims it;
- an Attempt that has not ended belongs to a Task that has not ended;
- nothing stands beyond its bound: whoever has died is followed within a lease and 15 s, and every wait has an end;
- a predicate is more than two states: where the rule's own footing is missing (no time at which a claim would look, no
  id to poll, no deadline of a doubt) the rule would never act or never end, and so it does not match.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from libs.kernel.figures import moment
from services.routing.domain.recovery import RECOVERY, Rule
from services.routing.domain.task import TERMINAL_TASKS, AttemptState, TaskState

TAKEN_OVER_S = 15.0
"""A lapsed claim is taken over within this (ATT-7)."""
LONGEST_WAIT_S = 3600.0
"""No Task is put to sleep for longer, but for a provider's own Retry-After."""
LONGEST_DOUBT_S = 300.0
"""The provider's records are asked every minute at the latest."""
END_IS_LATE_S = 120.0
"""A doubt ends within this after its deadline: the question in hand may take its time."""
GIVING_UP_IS_LATE_S = 600.0
OWED_S = 300.0
"""Health hears of an Attempt's end within this."""


class Need(StrEnum):
    """What a rule stands on beside the two states."""

    DUE = "due"
    """A time at which claims look at the Task."""
    JOB = "job"
    """The provider's id of the job."""
    END = "end"
    """A deadline of the doubt."""


NEEDS: Mapping[Rule, tuple[Need, ...]] = {
    Rule.SELECT: (Need.DUE,),
    Rule.DROP: (Need.DUE,),
    Rule.DOUBT: (Need.DUE, Need.END),
    Rule.RECONCILE: (Need.DUE, Need.END),
    Rule.FOLLOW: (Need.DUE, Need.JOB),
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """Which open Tasks a rule carries on: their state, that of their live Attempt (None: there is none), and needs."""

    rule: Rule
    task: TaskState
    live: AttemptState | None
    needs: tuple[Need, ...]


PREDICATES = tuple(Predicate(rule, task, live, NEEDS[rule]) for (task, live), rule in RECOVERY.items())


@dataclass(frozen=True, slots=True)
class Standing:
    """One open Task with its live Attempt, or a live Attempt with its Task: what a check looks at."""

    task_id: str
    task: TaskState
    next_action_at: datetime | None
    claimed_until: datetime | None
    waiting_reason: str
    epoch: int
    attempt_id: str = ""
    live: AttemptState | None = None
    provider_task_id: str = ""
    uncertain_deadline: datetime | None = None
    polls_failing_since: datetime | None = None
    parked: bool = False
    """It waits to be woken: the head of its line looks for it, and its own time is only the end of its waiting."""
    held: bool = False
    """It is paused: nobody looks for it, and its own time is only the end of its waiting."""

    def has(self, need: Need) -> bool:
        """Whether a rule could stand on that."""
        if need is Need.DUE:
            return self.next_action_at is not None
        return bool(self.provider_task_id) if need is Need.JOB else self.uncertain_deadline is not None


def matching(standing: Standing) -> int:
    """How many predicates match; one, if all is well."""
    return sum(
        standing.task is item.task and standing.live is item.live and all(standing.has(need) for need in item.needs)
        for item in PREDICATES
    )


class Sort(StrEnum):
    """The sorts of findings. The first three must never be; the others mean that somebody does not do his work."""

    NO_RULE = "no_rule"
    OUTLIVES = "outlives"
    NO_REASON = "no_reason"
    LAPSED = "lapsed"
    NOT_TAKEN = "not_taken"
    ASLEEP = "asleep"
    DOUBT_WITHOUT_END = "doubt_without_end"
    POLLED_IN_VAIN = "polled_in_vain"
    NOT_TOLD = "not_told"


NEVER = frozenset({Sort.NO_RULE, Sort.OUTLIVES, Sort.NO_REASON})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands where it should not; `subject` is the Attempt where there is one, else the Task."""

    sort: Sort
    subject: str
    task_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The moments beyond which a standing is beyond its bound, for a check made now."""

    lapsed: datetime
    asleep: datetime
    doubt_asleep: datetime
    doubt_over: datetime
    given_up: datetime


def limits(now: datetime, poll_give_up_s: float) -> Limits:
    """The bounds of this file as moments."""
    return Limits(
        lapsed=now - timedelta(seconds=TAKEN_OVER_S),
        asleep=now + timedelta(seconds=LONGEST_WAIT_S),
        doubt_asleep=now + timedelta(seconds=LONGEST_DOUBT_S),
        doubt_over=now - timedelta(seconds=END_IS_LATE_S),
        given_up=now - timedelta(seconds=poll_give_up_s + GIVING_UP_IS_LATE_S),
    )


def findings(standing: Standing, matches: int, bounds: Limits) -> tuple[Finding, ...]:
    """What is wrong with it; nothing, if all is well. `matches` is what `matching` says, or the store's own count."""
    if standing.task in TERMINAL_TASKS:
        text = f"the task ended as {standing.task}, its attempt is still {standing.live}"
        return (_finding(Sort.OUTLIVES, standing, text),)
    if matches != 1:
        return (_finding(Sort.NO_RULE, standing, f"{matches} recovery rules match {_where(standing)}"),)
    return tuple(_finding(sort, standing, text) for sort, text in _beyond(standing, bounds))


def _beyond(standing: Standing, bounds: Limits) -> list[tuple[Sort, str]]:
    due, doubt = standing.next_action_at, standing.live is AttemptState.SUBMISSION_UNCERTAIN
    found: list[tuple[Sort, str]] = []
    claimed = standing.claimed_until
    if claimed is not None and due is not None and max(claimed, due) < bounds.lapsed:
        found.append((Sort.LAPSED, f"its claim lapsed at {moment(claimed)} and nobody has taken it over"))
    sleeps = not (standing.parked or standing.held)
    if sleeps and due is not None and due > (bounds.doubt_asleep if doubt else bounds.asleep):
        found.append((Sort.ASLEEP, f"nobody looks at it before {moment(due)}"))
    end = standing.uncertain_deadline
    if doubt and end is not None and end < bounds.doubt_over:
        found.append((Sort.DOUBT_WITHOUT_END, f"it should have ended as unresolved at {moment(end)}"))
    failing = standing.polls_failing_since
    if standing.live in (AttemptState.ACCEPTED, AttemptState.RUNNING) and failing and failing < bounds.given_up:
        found.append((Sort.POLLED_IN_VAIN, f"its polls have failed since {moment(failing)} and it is not given up"))
    if not standing.waiting_reason and (standing.task is TaskState.QUEUED or doubt):
        found.append((Sort.NO_REASON, "it waits and no reason is told"))
    return found


def _finding(sort: Sort, standing: Standing, text: str) -> Finding:
    subject = standing.attempt_id or standing.task_id
    return Finding(sort, subject, standing.task_id, f"Task {standing.task_id} ({_where(standing)}): {text}.")


def _where(standing: Standing) -> str:
    """`dispatching, attempt submitting`."""
    lacks = [need for need in Need if need in _needed(standing) and not standing.has(need)]
    without = f" without {', '.join(lacks)}" if lacks else ""
    return f"{standing.task}, {f'attempt {standing.live}' if standing.live else 'no live attempt'}{without}"


def _needed(standing: Standing) -> tuple[Need, ...]:
    return next((item.needs for item in PREDICATES if (item.task, item.live) == (standing.task, standing.live)), ())


def not_taken(standing: Standing, since: datetime) -> Finding:
    """The first of its line, due and free, seen there again and again without a claim."""
    return _finding(Sort.NOT_TAKEN, standing, f"first of its line since {moment(since)}, and nobody claims it")


def not_told(attempt_id: str, task_id: str, ended: datetime) -> Finding:
    """An Attempt whose end health has not acknowledged."""
    text = f"Attempt {attempt_id} ended at {moment(ended)} and health has not acknowledged its outcome."
    return Finding(Sort.NOT_TOLD, attempt_id, task_id, text)

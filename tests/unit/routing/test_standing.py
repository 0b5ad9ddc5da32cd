"""Where Tasks may stand: every state that can come about has one way to go on, and what stands elsewhere is told."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.kernel.money import Money
from services.routing.domain import transitions
from services.routing.domain.attempts import fault
from services.routing.domain.recovery import RECOVERY, Rule, rule_of
from services.routing.domain.request import Request
from services.routing.domain.standing import NEEDS, PREDICATES, Need, Sort, Standing, findings, limits, matching
from services.routing.domain.task import (
    ATTEMPT_MOVES,
    TERMINAL_ATTEMPTS,
    TERMINAL_TASKS,
    Attempt,
    AttemptState,
    Result,
    Task,
    TaskState,
)
from services.routing.store.checks_memory import standing_of
from tests.support.worlds import START

LATER = START + timedelta(seconds=30)
LIVE = (None, *(state for state in AttemptState if state not in TERMINAL_ATTEMPTS))
FAILURE = fault("provider_error", "x", "supply", "supply", True)
BOUNDS = limits(START, 1800.0)


def fresh() -> Task:
    """A Task as it is handed over."""
    return Task(
        "t", Request("t", "m", {}), "video", TaskState.QUEUED, START, Money.zero("CNY"),
        waiting_reason="queue: first turn", next_action_at=START,
    )  # fmt: skip


def attempt(number: int) -> Attempt:
    """A new Attempt."""
    name = f"a{number}"
    return Attempt(name, "t", number, "s/x", "s", AttemptState.RESERVED, name, 1, 1, Money("CNY", Decimal(1)), name)


def writes(task: Task) -> Iterator[Task]:
    """Every Task that one write may make of this one: what each rule and the sender of an Attempt may record."""
    rule, live = rule_of(task), task.live
    if live is None:
        new = attempt(len(task.attempts) + 1)
        yield transitions.waiting(task, "health: circuit_open", LATER)
        yield transitions.submitting(task, new, START, LATER)
        yield transitions.with_attempt(transitions.move_task(task, TaskState.DISPATCHING), new)
        yield transitions.failed(task, FAILURE, START)
        yield transitions.cancelled(task, START)
        return
    if rule is Rule.DROP:
        yield transitions.submitting(task, live, START, LATER)
    if rule in (Rule.DOUBT, Rule.RECONCILE):
        yield transitions.accepted(task, live, "job-1", START, LATER)
    if rule is Rule.DOUBT:
        yield transitions.uncertain(task, live, FAILURE, "uncertain: x", LATER)
    if rule is Rule.RECONCILE:
        yield transitions.still_uncertain(task, live, "uncertain: x", LATER)
    if rule is Rule.FOLLOW:
        yield transitions.polled(task, live, True, LATER)
        yield transitions.poll_failed(task, live, "provider: x", START)
        yield transitions.cancel_tried(task, live, True, "cancel: x", LATER)
    for state in sorted(TERMINAL_ATTEMPTS & ATTEMPT_MOVES[live.state]):
        ended = transitions.attempt_ended(task, live, state, START, cost=None, failure=FAILURE)
        yield transitions.succeeded(ended, Result(), START) if task.state is not TaskState.QUEUED else ended
        yield transitions.failed(ended, FAILURE, START)
        yield transitions.cancelled(ended, START)
        yield transitions.requeued(ended, "retry: x", LATER)


def reachable(attempts: int) -> dict[tuple[Any, ...], Task]:
    """Every state that Tasks come to within so many Attempts, by what a check looks at."""
    found: dict[tuple[Any, ...], Task] = {}
    edge = [fresh()]
    while edge:
        task = edge.pop()
        standing = standing_of(task, None)
        seen = (task.state, standing.live, len(task.attempts), *(standing.has(need) for need in Need))
        if seen in found or len(task.attempts) > attempts:
            continue
        found[seen] = task
        if task.state not in TERMINAL_TASKS:
            edge.extend(writes(task))
    return found


def test_every_state_that_can_come_about_has_exactly_one_way_to_go_on():
    """ATT-7: exhaustively, over everything that writes may lead to in three Attempts; and every rule is reached."""
    tasks = reachable(3).values()
    for task in tasks:
        standing = standing_of(task, None)
        ended = task.state in TERMINAL_TASKS
        assert matching(standing) == (0 if ended else 1), standing
        assert task.live is None or not ended
        assert ended or findings(standing, 1, BOUNDS) == ()
    assert {(task.state, task.live.state if task.live else None) for task in tasks} == RECOVERY.keys() | {
        (state, None) for state in TERMINAL_TASKS
    }


@pytest.mark.parametrize("state, live", list(itertools.product(TaskState, LIVE)))
@pytest.mark.parametrize("needs", list(itertools.product((True, False), repeat=len(Need))))
def test_a_state_outside_the_table_has_none(state: TaskState, live: AttemptState | None, needs: tuple[bool, ...]):
    """ATT-7: every combination of states and footings: one predicate where the table has a rule that can stand, else
    none, never two."""
    has = dict(zip(Need, needs, strict=True))
    standing = stood(
        state,
        live,
        next_action_at=LATER if has[Need.DUE] else None,
        provider_task_id="job" if has[Need.JOB] else "",
        uncertain_deadline=LATER if has[Need.END] else None,
    )
    rule = RECOVERY.get((state, live))
    assert matching(standing) == int(rule is not None and all(has[need] for need in NEEDS[rule]))


def stood(state: TaskState, live: AttemptState | None, **more: Any) -> Standing:
    """Something that stands so, with everything that a rule may need."""
    base = Standing("t", state, START, None, "queue: x", 1, "a1" if live else "", live, "job" if live else "")
    return replace(base, **{"uncertain_deadline": LATER if live else None, **more})


@pytest.mark.parametrize(
    ("standing", "sort"),
    [
        (stood(TaskState.FAILED, AttemptState.RUNNING), Sort.OUTLIVES),
        (stood(TaskState.QUEUED, AttemptState.RESERVED), Sort.NO_RULE),
        (stood(TaskState.RUNNING, None), Sort.NO_RULE),
        (stood(TaskState.QUEUED, None, next_action_at=None), Sort.NO_RULE),
        (stood(TaskState.RUNNING, AttemptState.ACCEPTED, provider_task_id=""), Sort.NO_RULE),
        (stood(TaskState.QUEUED, None, waiting_reason=""), Sort.NO_REASON),
        (stood(TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN, waiting_reason=""), Sort.NO_REASON),
        (stood(TaskState.QUEUED, None, claimed_until=START - timedelta(seconds=16),
               next_action_at=START - timedelta(seconds=16)), Sort.LAPSED),
        (stood(TaskState.RUNNING, AttemptState.ACCEPTED, next_action_at=START + timedelta(hours=2)), Sort.ASLEEP),
        (stood(TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN, next_action_at=START + timedelta(minutes=6)),
         Sort.ASLEEP),
        (stood(TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN,
               uncertain_deadline=START - timedelta(seconds=121)), Sort.DOUBT_WITHOUT_END),
        (stood(TaskState.RUNNING, AttemptState.RUNNING, polls_failing_since=START - timedelta(seconds=2401)),
         Sort.POLLED_IN_VAIN),
    ],
)  # fmt: skip
def test_what_stands_beyond_its_bound_is_found(standing: Standing, sort: Sort):
    """ATT-6, ATT-7, ATT-10: one finding each, which names the Attempt where there is one."""
    (finding,) = findings(standing, matching(standing), BOUNDS)
    assert finding.sort is sort
    assert finding.subject == ("a1" if standing.live else "t")
    assert "Task t (" in finding.message


@pytest.mark.parametrize(
    "standing",
    [
        stood(TaskState.RUNNING, AttemptState.ACCEPTED, claimed_until=START - timedelta(seconds=14)),
        stood(TaskState.QUEUED, None, claimed_until=START - timedelta(hours=1), next_action_at=LATER),
        stood(TaskState.RUNNING, AttemptState.ACCEPTED, uncertain_deadline=START - timedelta(hours=1)),
        stood(TaskState.RUNNING, AttemptState.ACCEPTED, waiting_reason=""),
        stood(TaskState.DISPATCHING, AttemptState.SUBMITTING, waiting_reason=""),
        stood(TaskState.RUNNING, AttemptState.RUNNING, polls_failing_since=START - timedelta(seconds=2399)),
    ],
)
def test_what_stands_within_its_bounds_is_left_alone(standing: Standing):
    """ATT-7: a claim that has just lapsed, one whose Task is not due, a deadline that no longer matters."""
    assert findings(standing, matching(standing), BOUNDS) == ()


def test_predicates_are_the_table():
    """ATT-7: one predicate for each row of the table of rules, and no two for the same states."""
    states = [(item.task, item.live) for item in PREDICATES]
    assert len(set(states)) == len(states)
    assert set(states) == RECOVERY.keys()

"""The pure rules of dispatch: moves, recovery, switches, schedules, turns, settings."""

import itertools
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.kernel.money import Money
from services.routing.domain import transitions
from services.routing.domain.attempts import (
    Again,
    Final,
    after_failure,
    cost_of,
    fault,
    next_look,
    next_poll,
    outcome_is_told,
)
from services.routing.domain.catalog import Policy
from services.routing.domain.fairness import WEIGHTS, Lines, charge, passed_at_most, size
from services.routing.domain.recovery import RECOVERY, Step, next_step, rule_of
from services.routing.domain.request import Request
from services.routing.domain.task import (
    ATTEMPT_MOVES,
    TASK_MOVES,
    TERMINAL_ATTEMPTS,
    TERMINAL_TASKS,
    Attempt,
    AttemptState,
    Task,
    TaskState,
)
from services.routing.settings import Settings
from tests.support.worlds import START

POLICY = Policy("p", 1)
CATEGORIES = ("content", "request", "supply", "capacity", "unknown")


def task(state: TaskState = TaskState.QUEUED, *attempts: AttemptState, **changes: object) -> Task:
    """A Task with Attempts in those states."""
    made = Task("t", Request("t", "m", {}), "video", state, START, Money.zero("CNY"))
    tries = tuple(
        Attempt(f"a{number}", "t", number, "s/x", "s", given_state, f"a{number}", 1, 1, Money("CNY", Decimal(1)), "l")
        for number, given_state in enumerate(attempts, 1)
    )
    return replace(made, attempts=tries, **changes)  # type: ignore[arg-type]  # names of fields


@pytest.mark.parametrize("before, after", list(itertools.product(AttemptState, AttemptState)))
def test_attempts_move_along_their_table_alone(before: AttemptState, after: AttemptState):
    """ATT-5, ATT-6: `submitting` never goes back, an uncertain one goes where the table says, an ended one nowhere."""
    attempt = task(TaskState.DISPATCHING, before).attempts[0]
    if after == before or after in ATTEMPT_MOVES[before]:
        assert transitions.move_attempt(attempt, after).state is after
    else:
        with pytest.raises(transitions.IllegalMove):
            transitions.move_attempt(attempt, after)


@pytest.mark.parametrize("before, after", list(itertools.product(TaskState, TaskState)))
def test_tasks_move_along_their_table_alone(before: TaskState, after: TaskState):
    """ATT-4: what has ended never changes state."""
    if after == before or after in TASK_MOVES[before]:
        assert transitions.move_task(task(before), after).state is after
    else:
        with pytest.raises(transitions.IllegalMove):
            transitions.move_task(task(before), after)


def test_a_task_does_not_end_over_a_live_attempt():
    """SEL-25: no orphan: as long as an Attempt lives its Task does."""
    for state in AttemptState:
        running = task(TaskState.RUNNING, state)
        if state in TERMINAL_ATTEMPTS:
            assert transitions.cancelled(running, START).state is TaskState.CANCELLED
        else:
            with pytest.raises(transitions.IllegalMove):
                transitions.cancelled(running, START)


def test_every_state_that_can_come_about_has_exactly_one_rule():
    """ATT-7: one recovery rule for each non-terminal pair of Task and Attempt that the moves can reach."""
    reached = {(TaskState.QUEUED, None)}
    for state in set(AttemptState) - TERMINAL_ATTEMPTS:
        running = state in (AttemptState.ACCEPTED, AttemptState.RUNNING)
        reached.add((TaskState.RUNNING if running else TaskState.DISPATCHING, state))
    assert set(RECOVERY) == reached
    assert {state for state, _ in RECOVERY} == set(TaskState) - TERMINAL_TASKS
    for (task_state, attempt_state), rule in RECOVERY.items():
        made = task(task_state, *([attempt_state] if attempt_state else []))
        assert rule_of(made) is rule


def test_what_was_being_submitted_is_doubted_whatever_else_is_wanted():
    """ATT-5: a cancel or a deadline does not turn an unknown submission into a known one, nor send it again."""
    late = replace(task().request, deadline=START)
    doubted = task(TaskState.DISPATCHING, AttemptState.SUBMITTING, cancel_requested=True, request=late)
    assert next_step(doubted, POLICY, START + timedelta(days=1)) is Step.DOUBT
    uncertain = replace(doubted, attempts=task(TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN).attempts)
    assert next_step(uncertain, POLICY, START) is Step.RECONCILE


@given(
    category=st.sampled_from(CATEGORIES),
    retryable=st.booleans(),
    tried=st.integers(1, 4),
    allowed=st.integers(1, 4),
    age_s=st.integers(0, 2400),
)
def test_a_switch_needs_everything_that_it_needs(category: str, retryable: bool, tried: int, allowed: int, age_s: int):
    """ATT-1, ATT-2, ATT-3: category, retryable, an Attempt left, the window; without any one the fault is final."""
    ended = task(TaskState.RUNNING, *[AttemptState.FAILED] * tried)
    failure = fault("x", "x", category, "supply", retryable)
    verdict = after_failure(ended, replace(POLICY, max_attempts=allowed), failure, START + timedelta(seconds=age_s))
    may = category in ("supply", "capacity") and retryable and tried < allowed and age_s < 1200
    assert verdict == (Again() if may else Final(failure))


def test_an_attempt_whose_bytes_never_left_does_not_count():
    """ATT-1: a reservation lost with its process burns no Attempt."""
    ended = task(TaskState.QUEUED, AttemptState.FAILED, AttemptState.FAILED)
    spared = replace(ended, attempts=(replace(ended.attempts[0], counted=False), ended.attempts[1]))
    failure = fault("x", "x", "supply", "supply", True)
    assert isinstance(after_failure(spared, POLICY, failure, START), Again)
    assert isinstance(after_failure(ended, POLICY, failure, START), Final)


@given(st.floats(0, 1, exclude_max=True))
def test_an_uncertain_submission_is_looked_up_soon_and_then_less_often(chance: float):
    """ATT-6: first within 5 s, then at growing intervals up to 60 s, never past the deadline."""
    attempt = replace(task(TaskState.DISPATCHING, AttemptState.SUBMISSION_UNCERTAIN).attempts[0],
                      uncertain_deadline=START + timedelta(seconds=1800))  # fmt: skip
    pauses = []
    for count in range(30):
        asked = replace(attempt, reconcile_count=count)
        pauses.append((next_look(asked, START, chance) - START).total_seconds())
    assert pauses[0] <= 5
    assert pauses == sorted(pauses)
    assert max(pauses) <= 60
    assert pauses[-1] >= 54
    near = START + timedelta(seconds=1799)
    assert next_look(replace(attempt, reconcile_count=29), near, chance) == attempt.uncertain_deadline


@given(st.integers(0, 60), st.floats(0, 1, exclude_max=True), st.floats(0.1, 120))
def test_polls_keep_to_their_interval_and_back_off(failures: int, chance: float, interval: float):
    """ATT-9: within 10 % of the interval while answered, doubled for each failure up to a minute, after Retry-After."""
    attempt = replace(task(TaskState.RUNNING, AttemptState.ACCEPTED).attempts[0], poll_failures=failures)
    pause = (next_poll(attempt, interval, None, START, chance) - START).total_seconds()
    assert pause <= max(60.0, interval) * 1.1 + 0.001
    assert pause >= interval * 0.9 - 0.001
    if not failures:
        assert pause <= interval * 1.1 + 0.001
    assert next_poll(attempt, interval, 600_000, START, chance) >= START + timedelta(seconds=600)


def test_a_reported_cost_is_booked_in_the_catalogues_currency():
    """COST-3: converted by the rate of the Attempt's catalogue; without a rate the quote stands."""
    quote = Money("CNY", Decimal(6))
    assert cost_of(quote, None, {}) == quote
    assert cost_of(quote, Money("CNY", Decimal("5.5")), {}) == Money("CNY", Decimal("5.5"))
    assert cost_of(quote, Money("USD", Decimal(2)), {"USD": Decimal("7.00")}) == Money("CNY", Decimal(14)).rounded()
    assert cost_of(quote, Money("EUR", Decimal(2)), {"USD": Decimal("7.00")}) == quote


def test_only_ends_that_say_something_are_told_to_health():
    """HLT-5: success and failures are told, what is unknown and what was cancelled is not."""
    attempt = task(TaskState.RUNNING, AttemptState.RUNNING).attempts[0]
    supply, unknown = fault("x", "x", "supply"), fault("x", "x", "unknown")
    assert outcome_is_told(attempt, AttemptState.SUCCEEDED, None)
    assert outcome_is_told(attempt, AttemptState.FAILED, supply)
    assert not outcome_is_told(attempt, AttemptState.FAILED, unknown)
    assert not outcome_is_told(attempt, AttemptState.CANCELLED, None)
    assert not outcome_is_told(attempt, AttemptState.NOT_ACCEPTED, supply)


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), min_size=5, max_size=40), st.integers(1, 9))
def test_no_class_is_passed_more_often_than_the_bound(arrivals: list[tuple[int, int, int]], count: int):
    """ATT-9, CAP-11: whatever arrives and however claims are cut, a waiting head is passed by any one other line no
    more than the stated bound allows."""
    waiting: dict[str, list[float]] = {name: [] for name in WEIGHTS}
    passed = {name: dict.fromkeys(WEIGHTS, 0) for name in WEIGHTS}
    lines = Lines()
    for arrived in arrivals:
        for name, number in zip(WEIGHTS, arrived, strict=True):
            waiting[name] += [lines.enter(name, charge("image", {}, name)) for _ in range(number)]
        for _ in range(count):
            heads = {name: tags[0] for name, tags in waiting.items() if tags}
            if not heads:
                break
            name = min(heads, key=lambda item: (heads[item], item))
            lines.serve(waiting[name].pop(0))
            passed[name] = dict.fromkeys(WEIGHTS, 0)
            for other in heads.keys() - {name}:
                passed[other][name] += 1
                assert passed[other][name] <= passed_at_most(WEIGHTS[name], WEIGHTS[other])
        for name, tags in waiting.items():
            if not tags:
                passed[name] = dict.fromkeys(WEIGHTS, 0)


def test_size_is_what_a_request_asks_for():
    """CAP-11: the charge is by size, so that a line of long clips does not get more than one of short ones."""
    assert size("video", {"duration_s": 10}) == 2 * size("video", {"duration_s": 5}) == 2 * size("image", {})
    assert size("image", {"n": 4}) == 4
    assert size("speech", {"text": "x" * 1000}) == 2
    assert size("video", {"duration_s": 0}) > 0
    assert size("image", {"n": True}) == size("chat", {}) == 1
    assert charge("image", {}, "high") == charge("image", {}, "low") / 4


def test_settings_that_would_break_a_promise_are_refused():
    """CAP-3: a slot that would lapse under running work, a slow scan, a claim that dies are refused with the reason."""
    for wrong, reason in (
        ({"renew_interval_s": 40.0}, "CAP-3"),
        ({"capacity_ttl_s": 121.0}, "POINTSMAN_CAPACITY_TTL_MAX_S"),
        ({"capacity_ttl_max_s": 59.0}, "POINTSMAN_CAPACITY_TTL_MAX_S"),
        ({"scan_interval_s": 2.0}, "ATT-9"),
        ({"waiting_look_s": 0.4}, "CAP-10"),
        ({"heartbeat_s": 10.0}, "worker_lease_s"),
        ({"claim_batch": 0}, "above 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            Settings("memory:", **wrong)
    read = Settings.from_env(
        {"POINTSMAN_DATABASE_URL": "memory:", "ROUTING_CLAIM_BATCH": "7", "ROUTING_WORKER_LEASE_S": "20"}
    )
    assert (read.claim_batch, read.worker_lease_s, read.heartbeat_s) == (7, 20.0, 4.0)
    with pytest.raises(ValueError, match="ROUTING_CLAIM_BATCH"):
        Settings.from_env({"POINTSMAN_DATABASE_URL": "memory:", "ROUTING_CLAIM_BATCH": "many"})
    shared = {"POINTSMAN_DATABASE_URL": "memory:", "POINTSMAN_CAPACITY_TTL_MAX_S": "30"}
    with pytest.raises(ValueError, match="CAP-3"):
        Settings.from_env(shared)
    assert Settings.from_env({**shared, "ROUTING_CAPACITY_TTL_S": "30", "ROUTING_RENEW_INTERVAL_S": "10"})

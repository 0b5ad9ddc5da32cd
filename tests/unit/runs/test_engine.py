"""What a Run becomes."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.kernel.canonical import plain
from libs.kernel.money import Money
from services.runs.domain import commands, hearing
from services.runs.domain.engine import Act, Deed, next_commands
from services.runs.domain.history import applied, rebuilt
from services.runs.domain.plan import MAIN
from services.runs.domain.reading.production import single_plan
from services.runs.domain.run import (
    TERMINAL_KINDS,
    TERMINAL_STATES,
    Artifact,
    Draft,
    Event,
    Failure,
    Node,
    Order,
    Run,
    RunState,
)
from services.runs.domain.task_view import AttemptView, TaskView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Change = tuple[Run, tuple[Draft, ...]]
CLIP = Artifact("a" * 64, "video/mp4", 1000)
LAST = Failure("supply", "supply", True, "provider_error", "the last one")


PLAN = single_plan("clip", {"prompt": "x"})


def new_run() -> Run:
    """A Run as it is created."""
    order = Order("clip", {"prompt": "x"})
    return Run("r", "t", RunState.PENDING, order, {MAIN: Node(MAIN, "generate", "task")}, NOW)


def started(run: Run) -> Change:
    """Routing has taken its Task."""
    drafts = hearing.submitted(run, run.node)
    return applied(run, drafts, NOW), drafts


def followed(run: Run, task: TaskView) -> Change:
    """Its Task is seen."""
    drafts = hearing.followed(PLAN, run, run.node, task, (), NOW)
    return applied(run, drafts, NOW), drafts


def running() -> Run:
    """The same, handed to routing."""
    return started(new_run())[0]


def attempt(number: int, state: str, failure: Failure | None = None) -> AttemptView:
    """One try."""
    price = Money("CNY", Decimal("5.00"))
    return AttemptView(f"a{number}", number, f"s{number}", "c", state, price, price, failure)


def task(revision: int, state: str, *attempts: AttemptView, **facts: object) -> TaskView:
    """The Task at a revision."""
    return TaskView("task", revision, state, Money("CNY", Decimal("5.00")), attempts=attempts, **facts)  # type: ignore[arg-type]  # facts of several types


def kinds(drafts: tuple[Draft, ...]) -> list[str]:
    """The kinds alone."""
    return [draft.kind for draft in drafts]


def test_a_run_starts_with_its_node() -> None:
    """EVENT-2: routing's acceptance is told as run_started, node_ready, node_started, once."""
    run, drafts = started(new_run())
    assert kinds(drafts) == ["run_started", "node_ready", "node_started"]
    assert drafts[-1].data["task_id"] == "task"
    assert started(run) == (run, ())


def test_a_success_carries_its_result() -> None:
    """RUN-1: a succeeded Task ends the Run with artifacts, cost and one terminal event."""
    run, drafts = followed(running(), task(2, "succeeded", attempt(1, "succeeded"), artifacts=(CLIP,)))
    assert kinds(drafts) == [
        "attempt_started",
        "attempt_finished",
        "artifact_written",
        "node_completed",
        "run_completed",
    ]
    assert run.state is RunState.SUCCEEDED
    assert run.result is not None
    assert run.result.artifacts == (CLIP,)
    assert (run.usage.attempts, run.usage.supply) == (1, "s1")


def test_used_up_attempts_fail_with_the_last_code() -> None:
    """RUN-1a: no retry above the Task; every attempt is told, and the Run fails with the last code."""
    tries = (attempt(1, "failed", replace(LAST, code="rate_limited")), attempt(2, "failed", LAST))
    run, drafts = followed(running(), task(3, "failed", *tries, failure=LAST))
    assert kinds(drafts).count("attempt_finished") == 2
    assert run.state is RunState.FAILED
    assert run.failure == LAST


def test_a_passed_deadline_is_a_timeout() -> None:
    """RUN-1a: deadline_s ends `timed_out` with deadline_exceeded."""
    late = Failure("request", "request", False, "deadline_exceeded", "too late")
    run, drafts = followed(running(), task(2, "failed", failure=late))
    assert run.state is RunState.TIMED_OUT
    assert kinds(drafts)[-1] == "run_timed_out"


def test_a_degraded_result_says_so() -> None:
    """TIER-6: a degraded result is never shown as exact."""
    lost = {"degraded": True, "requested_profile": "933", "actual_profile": "900"}
    view = task(2, "succeeded", attempt(1, "succeeded"), dropped_inputs=("reference_videos",), **lost)
    run, _ = followed(running(), view)
    assert run.result is not None
    assert (run.result.degraded, run.result.requested_profile, run.result.actual_profile) == (True, "933", "900")
    assert run.result.dropped_inputs == ("reference_videos",)


def test_a_waiting_reason_is_told_when_it_changes() -> None:
    """ATT-10: the one current reason is on the node, and each change of it is one event."""
    full = task(2, "queued", waiting_reason="capacity: supply s1 concurrency 5 of 5")
    run, drafts = followed(running(), full)
    assert kinds(drafts) == ["node_waiting"]
    assert run.node.waiting_reason == full.waiting_reason
    assert followed(run, replace(full, revision=3)) == (run, ())


def test_a_view_that_comes_late_tells_nothing_twice() -> None:
    """EVENT-1: an attempt is told once, whatever is seen again."""
    seen = task(5, "running", attempt(1, "accepted"))
    run, _ = followed(running(), seen)
    assert followed(run, seen) == (run, ())
    assert followed(run, task(4, "queued")) == (run, ())


def test_an_answer_to_another_task_changes_nothing() -> None:
    """RUN-8: what an earlier try of a node was answered with is dropped."""
    run = running()
    assert followed(run, replace(task(9, "succeeded", artifacts=(CLIP,)), id="another")) == (run, ())


def test_a_run_at_rest_never_changes() -> None:
    """EVENT-1: one terminal event; whatever is seen later is nothing to a Run that has ended."""
    run, _ = followed(running(), task(2, "cancelled"))
    assert run.state is RunState.CANCELLED
    later = task(9, "succeeded", attempt(1, "succeeded"), artifacts=(CLIP,))
    assert followed(run, later) == (run, ())
    assert started(run) == (run, ())
    assert hearing.refused(PLAN, run, run.node, LAST, NOW) == ()
    assert hearing.withdrawn(PLAN, run, run.node, NOW) == ()
    assert next_commands(PLAN, run, NOW) == ()


ATTEMPT_STATES = ["submitting", "accepted", "running", "failed", "submission_uncertain", "not_accepted", "succeeded"]
HISTORIES = st.lists(
    st.tuples(
        st.sampled_from(["queued", "dispatching", "running"]),
        st.lists(st.sampled_from(ATTEMPT_STATES), max_size=3),
        st.sampled_from(["", "capacity", "health"]),
    ),
    max_size=8,
)


@given(HISTORIES, st.sampled_from(["succeeded", "failed", "cancelled"]))
def test_the_history_rebuilds_the_run(history: list[tuple[str, list[str], str]], end: str) -> None:
    """EVENT-3: whatever revisions were seen, the events alone give the Run's state, without gap, with one end."""
    run = new_run()
    told = [*hearing.created(run)]
    run, drafts = started(run)
    told += drafts
    views = [
        task(number, state, *(attempt(i, kind) for i, kind in enumerate(tries)), waiting_reason=reason)
        for number, (state, tries, reason) in enumerate(history, start=2)
    ]
    last = task(99, end, artifacts=(CLIP,), failure=LAST if end == "failed" else None)
    for view in [*views, last, *views]:
        run, drafts = followed(run, view)
        told += drafts
    events = [Event(str(n), "r", n, draft.kind, plain(draft.data), NOW) for n, draft in enumerate(told, start=1)]
    assert rebuilt(events) == replace(run, last_sequence=len(events))
    assert sum(event.kind in TERMINAL_KINDS.values() for event in events) == 1
    assert run.state in TERMINAL_STATES


def test_a_gap_is_noticed() -> None:
    """EVENT-1: the rebuilding refuses a history with a gap."""
    created = hearing.created(new_run())[0]
    first = Event("1", "r", 1, created.kind, plain(created.data), NOW)
    with pytest.raises(ValueError, match="follows"):
        rebuilt([first, Event("3", "r", 3, "run_started", {}, NOW)])
    with pytest.raises(ValueError, match="at least one"):
        rebuilt([])


def test_the_end_of_a_pause_is_told_by_silence() -> None:
    """RUN-8, RUN-2: while its Task is at a provider a paused Run's reason is the pause. Resumed, it waits for nothing,
    and routing is not told again and again."""
    seen = task(2, "running", attempt(1, "accepted"))
    run, _ = followed(running(), seen)
    paused = applied(run, commands.paused("", "", ""), NOW)
    held = replace(seen, revision=3, waiting_reason="pause: its attempt is followed")
    assert deeds(paused) == [Deed.FOLLOW, Deed.PAUSE]
    paused, _ = followed(paused, held)
    assert deeds(paused) == [Deed.FOLLOW]
    resumed = applied(paused, commands.resumed(paused, "", "", "", str), NOW)
    assert deeds(resumed) == [Deed.FOLLOW, Deed.UNPAUSE]
    resumed, _ = followed(resumed, replace(seen, revision=4))
    assert (resumed.node.waiting_reason, deeds(resumed)) == ("", [Deed.FOLLOW])


def deeds(run: Run) -> list[Deed]:
    """What is to be done."""
    return [act.deed for act in next_commands(PLAN, run, NOW) if isinstance(act, Act)]

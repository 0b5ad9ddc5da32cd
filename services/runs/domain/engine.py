"""What a Run becomes, and which events tell it. Pure: every function answers (the Run after, its new events).

Laws of this file:
- a Run at rest never changes; exactly one terminal event ends it (EVENT-1);
- an attempt is told started once and finished once, whatever revisions of its Task were seen or missed;
- the Run ends as its Task ended: used-up attempts `failed` with the last code, a passed deadline `timed_out` (RUN-1a).
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from libs.kernel.canonical import plain
from services.runs.domain.run import (
    RUN_MOVES,
    TERMINAL_KINDS,
    TERMINAL_STATES,
    Draft,
    Failure,
    Node,
    NodeState,
    Result,
    Run,
    RunState,
    Usage,
)
from services.runs.domain.task_view import AttemptView, TaskView

Change = tuple[Run, tuple[Draft, ...]]

ATTEMPT_ENDS = frozenset({"succeeded", "failed", "cancelled", "not_accepted", "unresolved"})
TASK_ENDS = {
    "succeeded": (NodeState.SUCCEEDED, RunState.SUCCEEDED),
    "failed": (NodeState.FAILED, RunState.FAILED),
    "cancelled": (NodeState.CANCELLED, RunState.CANCELLED),
}


def created(run: Run) -> Change:
    """The first event of a new Run."""
    return run, (Draft("run_created", {"model": run.order.model, "labels": dict(run.labels), "nodes": [run.node.id]}),)


def started(run: Run, now: datetime) -> Change:
    """Routing has taken the node's Task into care."""
    if run.state is not RunState.PENDING:
        return run, ()
    told = {"node": run.node.id}
    after = replace(run, state=RunState.RUNNING, started_at=now, node=replace(run.node, state=NodeState.RUNNING))
    return after, (
        Draft("run_started"),
        Draft("node_ready", told),
        Draft("node_started", {**told, "kind": run.node.kind, "task_id": run.node.task_id}),
    )


def refused(run: Run, failure: Failure, now: datetime) -> Change:
    """Routing will never take the Task: the Run fails before it started."""
    if run.state is not RunState.PENDING:
        return run, ()
    return _ended(run, replace(run.node, state=NodeState.FAILED, failure=failure), RunState.FAILED, failure, now)


def cancelled_before_start(run: Run, now: datetime) -> Change:
    """A cancel came before anything was handed to routing, which was asked."""
    if run.state is not RunState.PENDING:
        return run, ()
    return _ended(run, replace(run.node, state=NodeState.CANCELLED), RunState.CANCELLED, None, now)


def followed(run: Run, task: TaskView, now: datetime) -> Change:
    """The Task has a newer revision."""
    if run.state is not RunState.RUNNING or task.revision <= run.node.task_revision:
        return run, ()
    node, drafts = _attempts(run.node, task)
    node = replace(node, task_revision=task.revision)
    usage = Usage(task.cost, len(task.attempts), task.attempts[-1].supply if task.attempts else "")
    run = replace(run, usage=usage)
    if task.state in TASK_ENDS:
        after, ending = _finish(replace(run, node=node), task, now)
        return after, (*drafts, *ending)
    if task.waiting_reason != node.waiting_reason:
        node = replace(node, waiting_reason=task.waiting_reason)
        if task.waiting_reason:
            drafts = (*drafts, Draft("node_waiting", {"node": node.id, "reason": task.waiting_reason}))
    return replace(run, node=node), drafts


def _attempts(node: Node, task: TaskView) -> tuple[Node, tuple[Draft, ...]]:
    told = dict(node.attempts)
    drafts: list[Draft] = []
    for attempt in task.attempts:
        before = told.get(attempt.id)
        if before is None:
            drafts.append(Draft("attempt_started", _about(node, attempt)))
        if attempt.state in ATTEMPT_ENDS and before not in ATTEMPT_ENDS:
            end = {"state": attempt.state, "cost": attempt.cost and attempt.cost.to_json()}
            drafts.append(Draft("attempt_finished", {**_about(node, attempt), **end, "error": plain(attempt.failure)}))
        told[attempt.id] = attempt.state
    return replace(node, attempts=told), tuple(drafts)


def _about(node: Node, attempt: AttemptView) -> dict[str, Any]:
    return {
        "node": node.id,
        "attempt_id": attempt.id,
        "number": attempt.number,
        "supply": attempt.supply,
        "channel": attempt.channel,
        "quote": attempt.quote and attempt.quote.to_json(),
    }


def _finish(run: Run, task: TaskView, now: datetime) -> Change:
    node_state, run_state = TASK_ENDS[task.state]
    if task.failure is not None and task.failure.code == "deadline_exceeded":
        run_state = RunState.TIMED_OUT
    node = replace(run.node, state=node_state, waiting_reason="", artifacts=task.artifacts, failure=task.failure)
    if run_state is not RunState.SUCCEEDED:
        return _ended(run, node, run_state, task.failure, now)
    result = Result(
        task.artifacts,
        task.output,
        task.degraded,
        task.requested_profile,
        task.actual_profile,
        task.dropped_inputs,
    )
    written = tuple(Draft("artifact_written", {"node": node.id, **plain(artifact)}) for artifact in task.artifacts)
    after, ending = _ended(replace(run, result=result), node, run_state, None, now)
    return after, (*written, *ending)


def _ended(run: Run, node: Node, state: RunState, failure: Failure | None, now: datetime) -> Change:
    if state not in RUN_MOVES[run.state] or state not in TERMINAL_STATES:
        raise ValueError(f"run {run.id} cannot go from {run.state} to {state}")
    told: dict[str, Any] = {"node": node.id}
    if node.state is NodeState.SUCCEEDED:
        drafts = [Draft("node_completed", {**told, "artifacts": [artifact.sha256 for artifact in node.artifacts]})]
    elif node.state is NodeState.FAILED:
        drafts = [Draft("node_failed", {**told, "error": plain(failure)})]
    else:
        drafts = []
    after = replace(run, state=state, node=node, failure=failure, finished_at=now)
    facts = {"status": state.value, "cost": after.usage.cost and after.usage.cost.to_json(), "error": plain(failure)}
    return after, (*drafts, Draft(TERMINAL_KINDS[state], facts))

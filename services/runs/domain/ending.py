"""How a Run ends: what is still open is closed in the transaction of the one terminal event (EVENT-1, STEER-3)."""

from datetime import datetime, timedelta
from typing import Any

from libs.kernel.canonical import plain
from services.runs.domain import event_data
from services.runs.domain.asking import withdrawn
from services.runs.domain.plan import Plan
from services.runs.domain.run import (
    AT_WORK,
    ENDED_NODES,
    RUN_MOVES,
    TERMINAL_KINDS,
    TERMINAL_STATES,
    Draft,
    Failure,
    NodeState,
    Run,
    RunState,
)
from services.runs.domain.stranding import is_missing

UNCONSUMED = "unconsumed_at_final_boundary"
DEADLINE = Failure.of("deadline_exceeded", "the run's deadline has passed")


def deadline_of(plan: Plan, run: Run) -> datetime | None:
    """When the Run's time is over."""
    if isinstance(plan.deadline, timedelta):
        return run.created_at + plan.deadline
    return plan.deadline


def stopping(plan: Plan, run: Run, now: datetime) -> str:
    """Why nothing more is to be begun and what is at work is to end; "" while the Run goes on.

    A single generation ends by its Task: routing keeps its deadline and passes cancels on.
    """
    if run.cancel_requested:
        return "the run was cancelled"
    deadline = deadline_of(plan, run)
    if not plan.single and deadline is not None and deadline <= now:
        return "the run's deadline has passed"
    return ""


def wound_up(plan: Plan, run: Run, why: str) -> tuple[Draft, ...]:
    """Everything that has not been handed to routing ends; once nothing is at work, the Run does."""
    open_nodes = [node for node in run.nodes.values() if node.state not in ENDED_NODES]
    idle = [
        node
        for node in open_nodes
        if (node.state not in AT_WORK or (node.id in run.awaited and not node.items))
        and not _handed_over_at_once(plan, node.state)
    ]
    if idle:
        closing = [Draft("node_cancelled", {"node": node.id, "reason": why}) for node in idle]
        return (*closing, *withdrawn(run, why))
    if open_nodes and all(node.items for node in open_nodes):
        return tuple(Draft("node_cancelled", {"node": node.id, "reason": why}) for node in open_nodes)
    if run.asked:
        return withdrawn(run, why)
    if open_nodes or run.reserved or run.raising or any(node.hold for node in run.nodes.values()):
        return ()
    if run.cancel_requested:
        return ended(run, RunState.CANCELLED, None)
    return ended(run, RunState.TIMED_OUT, DEADLINE)


def _handed_over_at_once(plan: Plan, state: NodeState) -> bool:
    """A single generation may be on its way to routing while it is still pending: routing is asked first."""
    return plan.single and state is NodeState.PENDING


def ended(run: Run, state: RunState, failure: Failure | None) -> tuple[Draft, ...]:
    """The terminal event, after all that it closes."""
    if state not in RUN_MOVES[run.state] or state not in TERMINAL_STATES:
        raise ValueError(f"run {run.id} cannot go from {run.state} to {state}")
    told: dict[str, Any] = {
        "status": state.value,
        "cost": event_data.money_json(run.usage.cost) if run.usage.cost else None,
        "error": plain(failure),
    }
    return (*superseded(run), *withdrawn(run, "the run has ended"), Draft(TERMINAL_KINDS[state], told))


def superseded(run: Run) -> tuple[Draft, ...]:
    """What was steered and never consumed."""
    return tuple(
        Draft(
            "run.steer.superseded",
            {
                "steering_event_id": left.id,
                "source_event_id": left.source_event_id or left.id,
                "sequence": left.sequence,
                "kind": left.kind,
                "reason": UNCONSUMED,
            },
        )
        for left in run.steering
    )


def finished(run: Run) -> tuple[Draft, ...]:
    """A production whose nodes have all succeeded is done; one in which nothing can go on any more is a dead letter."""
    top = [node for node in run.nodes.values() if not node.parent]
    if all(node.state is NodeState.SUCCEEDED for node in top):
        return ended(run, RunState.SUCCEEDED, None)
    failed = [node for node in run.nodes.values() if node.state is NodeState.FAILED and not is_missing(node)]
    failures = [node.failure for node in failed if node.failure]
    if not failures:
        stopped = [node.id for node in top if node.state is not NodeState.SUCCEEDED]
        failures = [Failure.of("conflict", f"{', '.join(stopped)} did not end with a result")]
    return ended(run, RunState.DEAD_LETTER, failures[-1])

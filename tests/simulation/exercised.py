"""What happened in a world that gives the laws something to judge: a law is only seen to hold where it could break."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from services.health.domain.states import LADDER, SHUT, State
from services.routing.domain.task import Task, TaskState
from services.runs.domain.run import Event, Run
from tests.simulation.story import Story


def exercised(story: Story) -> Counter[str]:
    """Counts, by the names that the checkers' `NEEDS` use."""
    seen: Counter[str] = Counter(story.seen_by_witnesses)
    seen["runs"], seen["tasks"], seen["jobs at providers"] = len(story.runs), len(story.tasks), len(story.jobs)
    seen["slots lapsed"] = seen["slots granted"] - seen["slots returned"]
    newest = max(story.catalogs, default=0)
    for task in story.tasks:
        _of_task(task, newest, seen)
    for run in story.runs:
        _of_run(run, seen)
        _of_production(run, story.events[run.id], seen)
    seen["budgets that refused"] = sum(budget.refused_at is not None for budget in story.budgets)
    for stored in story.history:
        before, after = stored.event.before, stored.event.after
        seen["trips"] += after is State.CIRCUIT_OPEN and before is not State.CIRCUIT_OPEN
        seen["probes"] += after is State.PROBING and before is not State.PROBING
        seen["steps of a recovery"] += before in LADDER and stored.event.reason == "probe_succeeded"
        seen["recoveries"] += before in LADDER and after not in LADDER and after not in SHUT
        seen["outcomes ignored as stale"] += stored.event.kind == "stale_ignored"
    return seen


def _of_task(task: Task, newest: int, seen: Counter[str]) -> None:
    seen["attempts"] += len(task.attempts)
    seen["attempts not counted"] += sum(not attempt.counted for attempt in task.attempts)
    seen["attempts followed by another"] += max(0, len(task.attempts) - 1)
    seen["switches of supply"] += sum(a.supply != b.supply for a, b in pairwise(task.attempts))
    seen["attempts under a superseded revision"] += sum(a.catalog_revision < newest for a in task.attempts)
    seen["attempts that cost money"] += sum(bool(a.cost and a.cost.amount > Decimal(0)) for a in task.attempts)
    seen[f"tasks {task.state}"] += 1
    if task.cancel_requested and task.attempts:
        won = task.state is TaskState.CANCELLED
        seen["cancels that raced and won" if won else "cancels that raced and lost"] += 1


def _of_run(run: Run, seen: Counter[str]) -> None:
    seen["events"] += run.last_sequence
    seen[f"runs {run.state}"] += 1


KINDS = {
    "run.steer.consumed": "steering consumed",
    "run.steer.superseded": "steering superseded",
    "canary_released": "canaries released",
    "budget_settled": "holds settled",
    "budget_raised": "budgets raised",
    "run_redriven": "runs redriven",
    "review_escalated": "reviews handed on",
    "gate_opened": "gates opened",
}


def _of_production(run: Run, events: Sequence[Event], seen: Counter[str]) -> None:
    if run.production is None:
        return
    seen[f"productions {run.state}"] += 1
    for event in events:
        if event.kind in KINDS:
            seen[KINDS[event.kind]] += 1
        if event.kind == "run.steer.accepted":
            seen["steering migrated" if event.data.get("source_event_id") else "steering accepted"] += 1
        if event.kind == "node_completed":
            seen["results reused" if event.data.get("reused") else "nodes completed"] += 1
        seen["nodes tried again"] += event.kind == "node_ready" and event.data.get("try", 1) > 1

"""No node is paid twice for one try: each try has one Task whose id was on record before routing heard of it, each
job belongs to such a Task, and the same input gives one result that is taken ever after (RUN-5, RUN-6)."""

from collections import Counter

from services.runs.domain.run import Event, Run
from tests.simulation.story import Story

NEEDS = ("nodes completed", "nodes tried again", "results reused", "canaries released")


def check(story: Story) -> list[str]:
    """Breaches."""
    breaches: list[str] = []
    intended: set[str] = set()
    for run in story.runs:
        if run.production is not None:
            breaches += _run(run, story.events[run.id], intended)
    for task in story.tasks:
        if task.run_id in {run.id for run in story.runs if run.production is not None} and task.id not in intended:
            breaches.append(f"task {task.id} of {task.node_id} is no try that is on record")
    return breaches


def _run(run: Run, events: list[Event], intended: set[str]) -> list[str]:
    breaches = []
    tries: Counter[tuple[str, int]] = Counter()
    made: Counter[tuple[str, str]] = Counter()
    for event in events:
        data = event.data
        if event.kind == "node_ready" and data.get("task_id"):
            tries[data["node"], data["try"]] += 1
            if data["task_id"] in intended:
                breaches.append(f"run {run.id}: {data['node']} takes the Task {data['task_id']} again")
            intended.add(data["task_id"])
        elif event.kind == "node_started" and data.get("task_id") and data["task_id"] not in intended:
            breaches.append(f"run {run.id}: {data['node']} started {data['task_id']} before it was on record")
        elif event.kind == "node_completed" and run.nodes[data["node"]].task_ids and not data.get("reused"):
            made[data["node"], data["input_hash"]] += 1
    breaches += [
        f"run {run.id}: try {number} of {node} began {n} times" for (node, number), n in tries.items() if n > 1
    ]
    breaches += [f"run {run.id}: {node} was made {n} times of one input" for (node, _), n in made.items() if n > 1]
    return breaches

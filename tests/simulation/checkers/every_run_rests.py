"""Every order became exactly one Run, every Run came to rest, and so did its Task, in the same way (RUN-1, ATT-4).

A production at rest leaves nothing behind: no node at work, nobody asked, no money and no minutes held."""

from services.routing.domain.task import TERMINAL_TASKS
from services.runs.domain.run import AT_WORK, TERMINAL_STATES, NodeState, Run
from tests.simulation.story import Story

NEEDS = ("runs succeeded", "runs failed", "runs cancelled", "takeovers")
SAME = {"succeeded": {"succeeded"}, "failed": {"failed", "timed_out"}, "cancelled": {"cancelled"}}
OPEN = AT_WORK | {NodeState.WAITING_HUMAN, NodeState.COMPENSATING}


def check(story: Story) -> list[str]:
    """Breaches."""
    tasks = {task.id: task for task in story.tasks}
    breaches = []
    if sorted(story.orders.values()) != sorted(run.id for run in story.runs):
        breaches.append(f"{len(story.orders)} orders were acknowledged, there are {len(story.runs)} runs")
    for run in story.runs:
        if run.production is not None:
            breaches += _production(run)
            continue
        task = tasks.get(run.node.task_id)
        stands = f"{task.state}, {task.waiting_reason!r}" if task else "never taken"
        if run.state not in TERMINAL_STATES:
            breaches.append(f"run {run.id} is still {run.state}; its task: {stands}")
        elif task is not None and run.state not in SAME.get(task.state, set()):
            breaches.append(f"run {run.id} ended as {run.state}, its task as {stands}")
    for task in story.tasks:
        if task.state not in TERMINAL_TASKS or task.live is not None:
            breaches.append(f"task {task.id} is still {task.state}: {task.waiting_reason!r}")
        breaches += [f"attempt {a.id}: its outcome is still owed to health" for a in task.attempts if a.report_pending]
    return breaches


def _production(run: Run) -> list[str]:
    nodes = [f"{node.id} is {node.state}: {node.waiting_reason!r}" for node in run.nodes.values()]
    if run.state not in TERMINAL_STATES:
        asked = [f"{question.kind} of {question.node}" for question in run.questions.values()]
        return [f"production {run.id} is still {run.state}; asked: {asked}; {'; '.join(nodes)}"]
    orphans = [node for node in run.nodes.values() if node.state in OPEN or node.hold is not None]
    breaches = [f"production {run.id} is {run.state}, and {node.id} is {node.state}, {node.hold}" for node in orphans]
    if run.asked or run.reserved:
        breaches.append(f"production {run.id} is {run.state} and asks {list(run.asked)}, {list(run.reserved)}")
    return breaches

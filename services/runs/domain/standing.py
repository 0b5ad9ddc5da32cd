"""Whether a Run that was silent for long should have moved (RUN-6). Pure.

Waiting is no fault: for a provider, for a person, for a gate. What is due and does not happen is.
"""

from collections.abc import Collection
from datetime import datetime

from services.runs.domain.engine import Act, Deed, Record, next_commands
from services.runs.domain.moves import RECOVERY
from services.runs.domain.plan import Plan
from services.runs.domain.run import ENDED_NODES, NodeState, Run

FOLLOWING = frozenset({Deed.FOLLOW, Deed.CANCEL, Deed.PAUSE, Deed.UNPAUSE})
"""Done at every look for as long as a Task is at work."""


def followed(run: Run) -> list[str]:
    """The Tasks that routing should know."""
    at_work = (node for node in run.nodes.values() if node.state is NodeState.RUNNING and not node.items)
    return [node.task_id for node in at_work if node.task_id]


def stuck(plan: Plan, run: Run, known: Collection[str], now: datetime) -> str:
    """What should have happened by now, in words; "" for a Run that rightly waits. `known`: its Tasks at routing."""
    for node in run.nodes.values():
        if node.state not in ENDED_NODES and node.state not in RECOVERY:
            return f"{node.id} is {node.state}, and no rule carries that on"
    for task_id in followed(run):
        if task_id not in known:
            return f"routing does not know task {task_id}"
    for command in next_commands(plan, run, now):
        if isinstance(command, Record):
            return f"{command.drafts[0].kind} is due and is not on record"
        if isinstance(command, Act) and command.deed not in FOLLOWING:
            return f"{command.deed} of {command.node} is due and does not get done"
    return ""

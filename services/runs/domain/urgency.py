"""How urgent a node is within its production, for the queue that serves it (PRIO-1).

Read from the plan alone: a Task that is handed over again after a crash must be the same Task.
"""

from dataclasses import dataclass

from services.runs.domain.plan import Kind, Plan, Rank
from services.runs.domain.run import Node


@dataclass(frozen=True, slots=True)
class Urgency:
    """`stage`: how many nodes deep it lies; `blocking`: how many declared nodes wait for it, also through others;
    `blocks_release`: a gate of rank `release` needs it and no other generating node lies between."""

    stage: int = 0
    blocking: int = 0
    blocks_release: bool = False


def urgency(plan: Plan, node: Node) -> Urgency:
    """Of a node, or of the map that an item belongs to."""
    if plan.single:
        return Urgency()
    name = node.parent or node.id
    depth: dict[str, int] = {}
    for spec in plan.nodes.values():
        depth[spec.id] = max((depth[need] + 1 for need in spec.needs), default=0)
    behind = {name}
    for spec in plan.nodes.values():  # in the order of the graph: whoever needs one of them comes after it
        if not behind.isdisjoint(spec.needs):
            behind.add(spec.id)
    return Urgency(depth[name], len(behind) - 1, _blocks_release(plan, name))


def _blocks_release(plan: Plan, name: str) -> bool:
    """One look at each node, however many ways lead to it."""
    reached = {name}
    for spec in plan.nodes.values():
        if spec.kind in (Kind.GATE, Kind.CHECK) and not reached.isdisjoint(spec.needs):
            if spec.kind is Kind.GATE and spec.review.rank is Rank.RELEASE:
                return True
            reached.add(spec.id)
    return False

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
    waiting: set[str] = set()
    for spec in plan.nodes.values():
        if spec.id != name and waiting.union({name}) & set(spec.needs):
            waiting.add(spec.id)
    return Urgency(depth[name], len(waiting), _blocks_release(plan, name))


def _blocks_release(plan: Plan, name: str) -> bool:
    for after in plan.dependants(name):
        spec = plan.nodes[after]
        if spec.kind is Kind.GATE and spec.review.rank is Rank.RELEASE:
            return True
        if spec.kind in (Kind.GATE, Kind.CHECK) and _blocks_release(plan, after):
            return True
    return False

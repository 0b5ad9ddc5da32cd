"""What an upstream change touches: finished nodes whose input is another by now, and what that would cost (STALE-1).

Laws of this file: versions decide, never times; a node is compared when everything that it needs has finished again, so
an equal output stops the wave; what was made for the old input is kept, paid.
"""

from collections.abc import Iterator

from services.runs.domain.asking import rank_of
from services.runs.domain.expressions import Unresolved
from services.runs.domain.inputs import current_hash
from services.runs.domain.plan import Kind, Plan
from services.runs.domain.run import Draft, Node, NodeState, Run


def stale(plan: Plan, run: Run) -> tuple[Draft, ...]:
    """Marks for finished nodes whose recorded input differs from what they would get now."""
    return tuple(_marks(plan, run))


def _marks(plan: Plan, run: Run) -> Iterator[Draft]:
    for node in run.nodes.values():
        if node.state is not NodeState.SUCCEEDED and not _reopenable(plan, node):
            continue
        if any(run.nodes[need].state is not NodeState.SUCCEEDED for need in _needs(plan, node)):
            continue
        if node.parent and run.nodes[node.parent].state is not NodeState.RUNNING:
            continue
        try:
            now = current_hash(plan, run, node)
        except Unresolved:
            continue
        if now == node.input_hash:
            continue
        told = {"node": node.id, "was": node.input_hash, "is": now, "cause": _cause(plan, run, node)}
        if plan.spec(node.id).kind is Kind.GATE and node.state is NodeState.SUCCEEDED:
            told["rank"] = rank_of(plan, plan.spec(node.id)).value  # of the approval that stood
        yield Draft("node_stale", told)


def _reopenable(plan: Plan, node: Node) -> bool:
    """A gate or check that said no looks again when its subject is another."""
    return node.state is NodeState.FAILED and plan.spec(node.id).kind in (Kind.GATE, Kind.CHECK)


def _needs(plan: Plan, node: Node) -> tuple[str, ...]:
    return plan.spec(node.parent or node.id).needs


def _cause(plan: Plan, run: Run, node: Node) -> str:
    if plan.spec(node.id).kind is Kind.GATE:
        return f"{node.id} was decided for {node.input_hash[:12]}; what it was decided for has changed since"
    newest = max((run.nodes[need] for need in _needs(plan, node)), key=lambda need: str(need.finished_at), default=None)
    return f"{newest.id} gave something else" if newest is not None else "its declaration gives another input"


def touched(plan: Plan, run: Run, node_id: str) -> tuple[list[str], list[str]]:
    """(finished nodes that a new output of this one would make stale, in the order of the graph; nodes that have not
    begun and would simply take it). The most that can happen: an equal output stops it earlier."""
    reached = {node_id, run.nodes[node_id].parent} - {""}
    again: list[str] = []
    later: list[str] = []
    for spec in plan.nodes.values():
        if spec.id in reached or not reached & set(spec.needs):
            continue
        reached.add(spec.id)
        node = run.nodes[spec.id]
        for name in (spec.id, *node.items):
            done = run.nodes[name].state in (NodeState.SUCCEEDED, NodeState.RUNNING, NodeState.LEASED)
            (again if done else later).append(name)
    return again, later

"""Nodes that will never begin, because what they need has ended without a result (DLQ-1). Pure.

Laws of this file:
- such a node is a case file of its own, and at once: nobody has to look for it behind the node that it waits for;
- its file names that node and lies on the desk that can mend it; a redrive of that node begins this one with it, and so
  does a gate or a check that looks again after it had said no;
- it is no cause of anything: the Run tells the failure that began it all.
"""

from collections.abc import Iterator

from services.runs.domain.plan import Plan
from services.runs.domain.run import WAITING_TO_START, Draft, Failure, Node, NodeState, Run
from services.runs.domain.starting import desk_for, failed

MISSING = "dependency_missing"
GONE = frozenset({NodeState.FAILED, NodeState.CANCELLED})


def stranded(plan: Plan, run: Run) -> tuple[Draft, ...]:
    """The ends of nodes that wait for what will never be there, and the return of those for which it may be there after
    all, in the order of the graph."""
    return tuple(_turns(plan, run))


def _turns(plan: Plan, run: Run) -> Iterator[Draft]:
    causes: dict[str, Node] = {}
    """By node that is gone: the one that is to be mended."""
    for spec in plan.nodes.values():
        node = run.nodes[spec.id]
        waits = node.state in WAITING_TO_START
        if not waits and node.state not in GONE:
            continue
        missing = next((need for need in spec.needs if need in causes), "")
        if waits and missing:
            causes[node.id] = causes[missing]
            yield from _ended(run, node, missing, causes[missing])
        elif is_missing(node) and not missing:
            yield from _back(run, node)
        elif not waits:
            causes[node.id] = causes[missing] if missing and (is_missing(node) or node.failure is None) else node


def _ended(run: Run, node: Node, missing: str, cause: Node) -> Iterator[Draft]:
    for name in node.items:  # of a map that had begun before
        if run.nodes[name].state in WAITING_TO_START:
            yield Draft("node_cancelled", {"node": name, "reason": f"{missing} will not be there"})
    why = f"{cause.failure.code}: {cause.failure.message}" if cause.failure is not None else f"it is {cause.state}"
    through = "" if cause.id == missing else f" because of {cause.id}"
    said = f"needs {missing}, which will not be there{through}: {why}; redrive {cause.id}, and this one begins with it"
    desk = desk_for(cause.failure) if cause.failure is not None else "operations"
    yield failed(node, Failure.of(MISSING, said), desk)


def _back(run: Run, node: Node) -> Iterator[Draft]:
    told = {"was": node.input_hash, "is": "", "cause": "what it needs may be there after all"}
    cancelled = [name for name in node.items if run.nodes[name].state is NodeState.CANCELLED]
    for name in (*cancelled, node.id):
        yield Draft("node_stale", {"node": name, **told})


def is_missing(node: Node) -> bool:
    """Whether it ended because of another one."""
    return node.failure is not None and node.failure.code == MISSING

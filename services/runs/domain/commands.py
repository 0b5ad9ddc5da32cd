"""What people ask of a Run under way, and what that makes of it. Pure; whoever calls has checked who may.

Laws of this file:
- a command carries an id; one of the last 1,000 that comes again changes nothing (RUN-8);
- a redrive is a recovery on the same node: its history, policy and cost stay, its allowance begins anew (DLQ-1);
- a decision names who and why; what a person decided is an event (HUMAN-2).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from services.runs.domain import asking
from services.runs.domain.plan import Kind, Plan
from services.runs.domain.run import (
    AT_WORK,
    Draft,
    Node,
    NodeState,
    Run,
)
from services.runs.domain.staleness import touched

Drafts = tuple[Draft, ...]
NewId = Callable[[], str]
REVIVED = frozenset({NodeState.FAILED, NodeState.CANCELLED})


def known(run: Run, command_id: str) -> bool:
    """Whether that command was applied before."""
    return bool(command_id) and command_id in run.commands


def clashes(run: Run, command_id: str) -> bool:
    """Whether that id came before with another body: `KEY#HASH` where the hash is of the body."""
    key, mark, _ = command_id.rpartition("#")
    return bool(mark) and any(known.rpartition("#")[0] == key and known != command_id for known in run.commands)


def paused(reason: str, who: str, command_id: str) -> Drafts:
    """Nothing new is submitted from now on."""
    return (Draft("run_paused", _said(reason, who, command_id)),)


def resumed(run: Run, reason: str, who: str, command_id: str, new_id: NewId) -> Drafts:
    """It goes on; inputs that wait are taken over with their root (STEER-4)."""
    taken_over = tuple(
        Draft(
            "run.steer.accepted",
            {
                "steering_event_id": new_id(),
                "source_event_id": left.source_event_id or left.id,
                "sequence": left.sequence,
                "kind": left.kind,
                "data": left.data,
                "accepted_at": left.accepted_at,
            },
        )
        for left in run.steering
    )
    return (Draft("run_resumed", _said(reason, who, command_id)), *taken_over)


def cancelled(reason: str, who: str, command_id: str) -> Drafts:
    """It is to end."""
    return (Draft("run_cancel_requested", _said(reason, who, command_id)),)


def _said(reason: str, who: str, command_id: str) -> dict[str, Any]:
    return {"reason": reason, "who": who, **({"command_id": command_id} if command_id else {})}


def steered(run: Run, kind: str, data: Mapping[str, Any], command_id: str, new_id: NewId) -> Drafts:
    """An input is accepted (STEER-1)."""
    told = {"steering_event_id": new_id(), "sequence": run.steering_count + 1, "kind": kind, "data": dict(data)}
    return (Draft("run.steer.accepted", {**told, **({"command_id": command_id} if command_id else {})}),)


def redriven(
    plan: Plan,
    run: Run,
    targets: Sequence[str],
    reason: str,
    *,
    who: str = "",
    changes: Mapping[str, Any] | None = None,
    supply: str = "",
    command_id: str = "",
) -> Drafts:
    """Nodes begin again, and with them what ended because of them; questions about them are withdrawn."""
    again, resumed_maps, changed = _reach(plan, run, targets)
    questions = [asked.id for asked in run.asked.values() if asked.node in again or set(asked.subjects) & set(again)]
    told = {
        "nodes": again,
        "resumed": resumed_maps,
        "changed": changed if changes or supply else [],
        "changes": dict(changes or {}),
        "supply": supply,
        "reason": reason,
        "who": who,
        **({"command_id": command_id} if command_id else {}),
    }
    cause = f"{', '.join(targets)} is redriven"
    return (*asking.withdrawn(run, cause, only=questions, who=who), Draft("run_redriven", told))


def _reach(plan: Plan, run: Run, targets: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """(nodes that begin again, maps that are at work again, nodes that a change is meant for)."""
    again: dict[str, None] = {}
    maps: dict[str, None] = {}
    changed: dict[str, None] = {}
    for target in targets:
        node = run.nodes[target]
        if node.items:
            maps[target] = None
            revived = [name for name in node.items if run.nodes[name].state in REVIVED]
            waiting = [name for name in node.items if run.nodes[name].state in (NodeState.PENDING, NodeState.STALE)]
            again |= dict.fromkeys(revived)
            changed |= dict.fromkeys([*revived, *waiting])
        else:
            again[target] = None
            changed[target] = None
        if node.parent:
            maps[node.parent] = None
            siblings = run.nodes[node.parent].items
            again |= dict.fromkeys(name for name in siblings if run.nodes[name].state is NodeState.CANCELLED)
        again |= dict.fromkeys(_behind(plan, run, node.parent or node.id))
    begun = (name for name in maps if run.nodes[name].state is not NodeState.PENDING)  # the others begin by themselves
    return list(again), [name for name in begun if name not in again], list(changed)


def _behind(plan: Plan, run: Run, node_id: str) -> Iterator[str]:
    """What ended because of that node, or waits for a word about what it gave. An item begins with its map, which looks
    at its list again once everything that it needs is there."""
    awaited = run.awaited
    for name in chain(*touched(plan, run, node_id)):
        node = run.nodes[name]
        if node.state in REVIVED or node.state is NodeState.WAITING_HUMAN or name in awaited:
            yield name
            if node.parent and run.nodes[node.parent].state is not NodeState.RUNNING:
                yield node.parent


def failed_nodes(run: Run) -> list[str]:
    """What a redrive without a name is about: every node that failed, of a map its items where some of them did."""
    failed = {node.id: node for node in run.nodes.values() if node.state is NodeState.FAILED}
    return [name for name, node in failed.items() if not failed.keys() & set(node.items)]


def why_not_redriven(node: Node) -> str:
    """ "" if that node may begin again now."""
    if node.items:
        return ""
    if node.state in AT_WORK:
        return f"node {node.id} is {node.state}; cancel the run or wait until its task has ended"
    return ""


def what_is_missing(plan: Plan, run: Run, node: Node) -> str:
    """ "" if what that node needs may still be there; else what is to be redriven in its place."""
    for need in plan.spec(node.parent or node.id).needs:
        gone = run.nodes[need]
        if gone.state in REVIVED:
            told = f"{node.id} needs {need}, which is {gone.state}: redrive {need}, and what needs it begins with it"
            return what_is_missing(plan, run, gone) or told
    return ""


def why_not_changed(node: Node) -> str:
    """ "" if another input or supply means something to that node."""
    if node.kind == Kind.GENERATE or node.items:
        return ""
    what = "map without items as yet" if node.kind == Kind.MAP else node.kind
    return f"{node.id} is a {what}: name a node that generates, or a map with items"


def compensated(plan: Plan, run: Run, node_id: str, cause: str, who: str) -> Drafts:
    """What the node gave counts no longer: invalidated, its dependants that have not begun are cancelled (COMP-1).

    Nothing is deleted: the artifacts stay on record, paid. It waits for no slot and no budget, so nothing starves it.
    """
    node = run.nodes[node_id]
    artifacts = [artifact.sha256 for artifact in node.artifacts]
    told = {"node": node_id, "compensation": plan.spec(node_id).compensation, "cause": cause, "who": who}
    _, later = touched(plan, run, node_id)
    idle = [
        name
        for name in later
        if run.nodes[name].state in (NodeState.PENDING, NodeState.STALE) and plan.spec(name).kind is not Kind.GATE
    ]
    return (
        Draft("compensation_started", {**told, "artifacts": artifacts}),
        *(Draft("node_cancelled", {"node": name, "reason": f"{node_id} is compensated"}) for name in idle),
        Draft("compensation_finished", {**told, "invalidated": artifacts, "replaced_by": node_id}),
    )


def claimed(asked: str, node: str, who: str) -> Drafts:
    """Somebody looks at a question."""
    return (Draft("review_claimed", {"review_id": asked, "node": node, "assignee": who}),)

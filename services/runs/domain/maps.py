"""Maps: items out of a list, canaries first, the rest when these were good (GATE-3). Pure; answers the next events.

Laws of this file:
- of a class that is not released, only as many items are at work as canaries are still needed; the rest await them;
- one failure more than is tolerated ends the fan-out: what has not begun is cancelled, what is paid is followed;
- a map is done when all its items have ended; those that failed within the tolerance are left out of what it gives.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from libs.kernel.canonical import plain
from services.runs.domain.asking import open_for, opened, question
from services.runs.domain.inputs import items_now
from services.runs.domain.plan import Canary, Plan
from services.runs.domain.run import (
    AT_WORK,
    ENDED_NODES,
    WAITING_TO_START,
    Draft,
    Failure,
    Node,
    NodeState,
    Run,
)


def children(run: Run, node: Node) -> list[Node]:
    """The nodes that a map's items became, in order."""
    return [run.nodes[name] for name in node.items]


def expanded(plan: Plan, run: Run, node: Node, input_hash: str) -> tuple[Draft, ...]:
    """A map begins, or looks at its list again after that changed."""
    items = items_now(plan, run, node)
    told = {"node": node.id, "items": items, "item_kind": "generate", "input_hash": input_hash}
    return Draft("node_ready", told), Draft("node_started", {"node": node.id, "kind": node.kind})


def advanced(plan: Plan, run: Run, node: Node, now: datetime) -> tuple[Draft, ...]:
    """What a map at work does next."""
    spec = plan.spec(node.id)
    made = children(run, node)
    failed = [child for child in made if child.state is NodeState.FAILED]
    if len(failed) > spec.tolerate:
        return _stopped(run, node, made, failed, spec.tolerate)
    if all(child.state in ENDED_NODES for child in made):
        artifacts = [artifact for child in made if child.state is NodeState.SUCCEEDED for artifact in child.artifacts]
        left_out = [child.id for child in failed]
        told = {"node": node.id, "artifacts": [item.sha256 for item in artifacts], "artifact_list": plain(artifacts)}
        return (Draft("node_completed", {**told, "input_hash": node.input_hash, "left_out": left_out}),)
    return tuple(_releases(plan, run, node, made, now))


def _stopped(run: Run, node: Node, made: Sequence[Node], failed: Sequence[Node], tolerated: int) -> tuple[Draft, ...]:
    why = f"the fan-out stopped: {len(failed)} items failed, {tolerated} are tolerated"
    waiting = [child for child in made if child.state in WAITING_TO_START]
    if waiting:
        return tuple(Draft("node_cancelled", {"node": child.id, "reason": why}) for child in waiting)
    if any(child.state not in ENDED_NODES for child in made):
        return ()
    last = failed[-1].failure
    error = Failure(last.category if last else "unknown", "request", False, "fan_out_stopped", why)
    return (Draft("node_failed", {"node": node.id, "error": plain(error)}),)


def class_of(child: Node) -> str:
    """What goes first in small: its class of shots, and within it those that were moved to another Supply (GATE-6)."""
    return f"{child.shot_class}@{child.supply}" if child.supply else child.shot_class


def _canary_of(plan: Plan, child: Node) -> Canary | None:
    """As declared; what was moved to another Supply goes through one in any case."""
    declared = plan.spec(child.parent).canary
    return Canary() if declared is None and child.supply else declared


def _releases(plan: Plan, run: Run, node: Node, made: Sequence[Node], now: datetime) -> Iterator[Draft]:
    for shot_class in dict.fromkeys(class_of(child) for child in made):
        members = [child for child in made if class_of(child) == shot_class]
        canary = _canary_of(plan, members[0])
        if canary is None:
            continue
        good = [child for child in members if child.state is NodeState.SUCCEEDED]
        if shot_class in node.released or len(good) < min(canary.count, len(members)):
            continue
        told = {"node": node.id, "shot_class": shot_class, "canaries": [child.id for child in good]}
        if not canary.by_person or all(child.state in ENDED_NODES for child in members):
            yield Draft("canary_released", {**told, "by": "checks"})
        elif open_for(run, "canary", node.id, f"canary:{node.id}:{shot_class}") is None:
            asked = question(
                plan, run, node, "canary", now,
                asks=f"May the other {len(members) - len(good)} items of class {shot_class!r} follow?",
                cause="the canaries of this class are made",
                root_cause=f"canary:{node.id}:{shot_class}",
                artifacts=[artifact for child in good for artifact in child.artifacts],
                about=good,
            )  # fmt: skip
            yield opened(asked)


def held_back(plan: Plan, run: Run, child: Node) -> str:
    """Why an item does not begin though its map is at work; "" if it may."""
    node = run.nodes[child.parent]
    spec = plan.spec(node.id)
    made = children(run, node)
    at_work = [each for each in made if each.state in AT_WORK or each.state is NodeState.WAITING_HUMAN]
    canary = _canary_of(plan, child)
    if canary is not None and class_of(child) not in node.released:
        members = [each for each in made if class_of(each) == class_of(child)]
        gone_ahead = sum(each.state is NodeState.SUCCEEDED or each in at_work for each in members)
        next_ones = [each.id for each in members if each.state in WAITING_TO_START][: canary.count - gone_ahead]
        if gone_ahead >= canary.count or child.id not in next_ones:
            return f"awaiting_canary: class {class_of(child)!r} of {node.id}"
    if spec.trial and (reference := _reference(child)):
        same = [each for each in made if _reference(each) == reference]
        stable = any(each.state is NodeState.SUCCEEDED for each in same)
        if not stable and sum(each in at_work for each in same) >= spec.trial:
            return f"reference: {reference[:40]} is new; {spec.trial} at once until one of them is good"
    if spec.concurrency and sum(each.state in AT_WORK for each in made) >= spec.concurrency:
        return f"slot: {spec.concurrency} of {spec.concurrency} items of {node.id} are at work"
    return ""


def _reference(child: Node) -> str:
    return str(child.item.get("reference") or "")

"""Maps: items out of a list, canaries first, the rest when these were good (GATE-3). Pure; answers the next events.

Laws of this file:
- of a class that is not released, only as many items are at work as canaries are still needed; the rest await them;
- one failure more than is tolerated ends the fan-out: what has not begun is cancelled, what is paid is followed;
- a map is done when all its items have ended; those that failed within the tolerance are left out of what it gives.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from libs.kernel.canonical import plain
from services.runs.domain.asking import open_for, question
from services.runs.domain.inputs import items_now
from services.runs.domain.minutes import asked_for
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
        return _stopped(node, made, failed, spec.tolerate)
    if all(child.state in ENDED_NODES for child in made):
        artifacts = [artifact for child in made if child.state is NodeState.SUCCEEDED for artifact in child.artifacts]
        left_out = [child.id for child in failed]
        told = {"node": node.id, "artifacts": [item.sha256 for item in artifacts], "artifact_list": plain(artifacts)}
        return (Draft("node_completed", {**told, "input_hash": node.input_hash, "left_out": left_out}),)
    return tuple(_releases(plan, run, node, made, now))


def _stopped(node: Node, made: Sequence[Node], failed: Sequence[Node], tolerated: int) -> tuple[Draft, ...]:
    items = "1 item" if len(failed) == 1 else f"{len(failed)} items"
    why = f"the fan-out stopped: {items} failed, {tolerated} are tolerated"
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
            rest = f"{len(members) - len(good)} of {len(members)} items"
            asked = question(
                plan, run, node, "canary", now,
                asks=f"May the rest of class {shot_class!r} follow, {rest}?",
                cause="the canaries of this class are made",
                root_cause=f"canary:{node.id}:{shot_class}",
                artifacts=[artifact for child in good for artifact in child.artifacts],
                about=good,
            )  # fmt: skip
            yield from asked_for(plan, asked)


@dataclass(frozen=True, slots=True)
class Crowd:
    """How the items of one map stand, counted once for all of them."""

    at_work: int
    ahead: Mapping[str, int]
    """By class: those that are good or on their way to it."""
    first: Mapping[str, tuple[str, ...]]
    """By class: those that have not begun, in order, as many as canaries could be."""
    trying: Mapping[str, int]
    """By reference: those on their way."""
    stable: frozenset[str]
    """References that have proved themselves."""


def crowd(run: Run, node: Node) -> Crowd:
    """Count the items of a map."""
    ahead: Counter[str] = Counter()
    trying: Counter[str] = Counter()
    first: dict[str, list[str]] = {}
    stable, at_work = set(), 0
    for child in children(run, node):
        on_its_way = child.state in AT_WORK or child.state is NodeState.WAITING_HUMAN
        at_work += child.state in AT_WORK and not child.refused
        if on_its_way or child.state is NodeState.SUCCEEDED:
            ahead[class_of(child)] += 1
        if child.state in WAITING_TO_START:
            first.setdefault(class_of(child), []).append(child.id)
        trying[_reference(child)] += on_its_way
        if child.state is NodeState.SUCCEEDED:
            stable.add(_reference(child))
    return Crowd(at_work, ahead, {name: tuple(ids) for name, ids in first.items()}, trying, frozenset(stable))


def held_back(plan: Plan, run: Run, child: Node, crowd: Crowd) -> str:
    """Why an item does not begin though its map is at work; "" if it may."""
    node = run.nodes[child.parent]
    spec = plan.spec(node.id)
    canary, shot_class = _canary_of(plan, child), class_of(child)
    if canary is not None and shot_class not in node.released:
        needed = canary.count - crowd.ahead.get(shot_class, 0)
        if needed <= 0 or child.id not in crowd.first.get(shot_class, ())[:needed]:
            return f"awaiting_canary: class {shot_class!r} of {node.id}"
    reference = _reference(child)
    if spec.trial and reference and reference not in crowd.stable and crowd.trying[reference] >= spec.trial:
        return f"reference: {reference[:40]} is new; {spec.trial} at once until one of them is good"
    if spec.concurrency and crowd.at_work >= spec.concurrency:
        return f"slot: {spec.concurrency} of {spec.concurrency} items of {node.id} are at work"
    return ""


def _reference(child: Node) -> str:
    return str(child.item.get("reference") or "")

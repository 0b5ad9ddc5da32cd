"""What a node is to work on now: expressions resolved, steering merged, people's changes on top; and the hash of it.

An input is a function of the Run: the same Run gives the same input and the same hash, on every replica and in every
replay. Raises `expressions.Unresolved` where something that it names is not there yet.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from libs.kernel.canonical import digest, plain
from services.runs.domain.belongings import not_its_own
from services.runs.domain.expressions import (
    Given,
    Made,
    Scope,
    Unresolved,
    digests_in,
    expressions,
    resolve,
    resolved_input,
)
from services.runs.domain.fan_out import items_of
from services.runs.domain.merging import changed, fewer_variants, input_hash, steered
from services.runs.domain.plan import Kind, Plan, Spec
from services.runs.domain.run import Artifact, Node, NodeState, Run, Steered


def namespace(node: Node) -> str:
    """Where steering for a node is consumed: its map, or itself."""
    return node.parent or node.id


def scope_of(plan: Plan, run: Run, node: Node) -> Scope:
    """What expressions of that node may name."""
    given = {need: given_by(run, run.nodes[need]) for need in plan.spec(namespace(node)).needs}
    return Scope(plan.inputs, node.item if node.parent else None, given)


def given_by(run: Run, node: Node) -> Given:
    """What a finished node gives to those that need it."""
    result = node.results.get(node.input_hash)
    items = tuple(_made(run, node)) if node.kind == Kind.MAP else None
    return Given(node.artifacts, result.output if result else {}, items)


def _made(run: Run, node: Node) -> Iterator[Made]:
    for child in (run.nodes[name] for name in node.items):
        if child.state is NodeState.SUCCEEDED:
            result = child.results.get(child.input_hash)
            yield Made(child.item, child.artifacts, result.output if result else {})


def prepared(plan: Plan, run: Run, node: Node, steering: int | None = None) -> tuple[dict[str, Any], str]:
    """(the input of a generate node, its hash). `steering`: how many of its namespace's inputs it holds; None = all.

    A pinned Supply is part of the hash: who moves a node to another one wants it made there.
    """
    spec = plan.spec(node.id)
    value = resolved_input(plan, node.id, scope_of(plan, run, node))
    for taken in run.steered.get(namespace(node), ())[:steering]:
        if taken.kind in spec.consumes_steering:
            value = steered(value, spec.consumes_steering[taken.kind], taken.data)
    if node.fewer:  # before what people changed: their word stands
        value = fewer_variants(value)
    value = changed(value, node.changes)
    hashed = input_hash(spec.model, value, degradation=spec.degradation, billing_mode=spec.billing_mode)
    return value, digest([hashed, node.supply]) if node.supply else hashed


def foreseen(plan: Plan, run: Run, node: Node, *coming: Steered) -> tuple[dict[str, Any], bool]:
    """(the input that a generate node would begin with, with all that waits for it and these after it; whether that is
    all of it). Where its expressions have no value yet it is what is known: a text appended to one of them stands for
    the whole. Unresolved for a path that leads through one."""
    spec = plan.spec(node.id)
    waiting = (Steered(left.kind, left.data) for left in run.steering)
    held = (*run.steered.get(namespace(node), ()), *waiting, *coming)
    taken = [one for one in held if one.kind in spec.consumes_steering]
    try:
        return prepared(plan, replace(run, steered={**run.steered, namespace(node): tuple(taken)}), node)[0], True
    except Unresolved as missing:
        value = {name: said for name, said in spec.input.items() if not any(expressions(said))}
        unknown = spec.input.keys() - value.keys()
        for one in taken:
            path = spec.consumes_steering[one.kind]
            field, _, inner = path.partition(".")
            if not (inner and field in unknown):
                value = steered(value, path, one.data)
            elif one in coming:
                raise missing
        return changed(value, node.changes), False


def items_now(plan: Plan, run: Run, node: Node) -> list[dict[str, Any]]:
    """The items of a map: each `{id, item, shot_class}`. Unresolved for a list that is none of objects with ids."""
    spec = plan.spec(node.id)
    items, faults = items_of(resolve(spec.over, scope_of(plan, run, node)))
    if faults:
        where, reason = faults[0]
        raise Unresolved(f"over of {node.id}", f"{where or 'it'} {reason}")
    per = spec.canary.per if spec.canary else "shot_class"
    return [{"id": name, "item": item, "shot_class": str(item.get(per, ""))} for name, item in items.items()]


def subject(plan: Plan, run: Run, node: Node) -> tuple[Any, tuple[Artifact, ...]]:
    """(what a gate or check binds to, the artifacts that it is about): what it declares, or what its needs gave; these
    too where what it declares holds no file."""
    spec = plan.spec(node.id)
    given = tuple(dict.fromkeys(artifact for need in spec.needs for artifact in run.nodes[need].artifacts))
    if spec.subject is None:
        return {need: [artifact.sha256 for artifact in run.nodes[need].artifacts] for need in spec.needs}, given
    value = own(run, f"subject of {node.id}", resolve(spec.subject, scope_of(plan, run, node)))
    known = {artifact.sha256: artifact for artifact in given}
    named = tuple(known.get(sha256) or Artifact(sha256, "", 0) for sha256 in digests_in(value))
    return value, named or given


def passed_on(plan: Plan, run: Run, node: Node) -> dict[str, Any]:
    """What `node_completed` of a check tells: it made nothing, and what it looked at goes on, as through a gate. Else a
    gate behind it would show no file, and an approval there would outlive every change (GATE-2)."""
    try:
        seen = looked_at(plan, run, node)
    except Unresolved:  # waived without what it was to look at
        seen = ()
    artifacts = tuple(dict.fromkeys(artifact for _, files in seen for artifact in files))
    return {"artifacts": [artifact.sha256 for artifact in artifacts], "artifact_list": plain(artifacts)}


def own(run: Run, place: str, value: Any) -> Any:
    """The value, if the files that it names are the Run's own; else Unresolved, telling the place."""
    if strange := not_its_own(run, value):
        raise Unresolved(
            place, f"names artifact {strange}, which the run was not given: write the material as an object"
        )
    return value


def current_hash(plan: Plan, run: Run, node: Node) -> str:
    """The input hash that the node would have if it began now, holding the steering that it held."""
    spec = plan.spec(node.id)
    if spec.kind is Kind.GENERATE:
        return prepared(plan, run, node, node.steered)[1]
    if spec.kind is Kind.MAP:
        return digest(items_now(plan, run, node))
    return subject_hash(plan, run, node, spec)


def subject_hash(plan: Plan, run: Run, node: Node, spec: Spec) -> str:
    """The hash that a decision or a check binds to (GATE-2)."""
    value, artifacts = subject(plan, run, node)
    if spec.kind is Kind.CHECK and spec.subject is not None:  # other files are another question, whatever it declares
        value = [value, [artifact.sha256 for artifact in artifacts]]
    return digest([value, [[check.name, check.argument] for check in spec.checks]])


def looked_at(plan: Plan, run: Run, node: Node) -> tuple[tuple[str, tuple[Artifact, ...]], ...]:
    """What a check looks at, by the node that made it: the files that its subject holds, or else all that its needs and
    the items of maps among them gave. A file that none of these made stands under the check's own id. Unresolved."""
    spec = plan.spec(node.id)
    needed = (run.nodes[need] for need in spec.needs)
    flat = (child for each in needed for child in ([run.nodes[name] for name in each.items] or [each]))
    makers = [each for each in flat if each.state is NodeState.SUCCEEDED and each.artifacts]
    named = () if spec.subject is None else digests_in(subject(plan, run, node)[0])
    if not named:
        return tuple((each.id, each.artifacts) for each in makers)
    made = {artifact.sha256: (each.id, artifact) for each in reversed(makers) for artifact in each.artifacts}
    found: dict[str, tuple[Artifact, ...]] = {}
    for sha256 in named:
        name, artifact = made.get(sha256) or (node.id, Artifact(sha256, "", 0))
        found[name] = (*found.get(name, ()), artifact)
    return tuple(found.items())

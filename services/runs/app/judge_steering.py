"""A steering input is held against the models of the nodes that may take it before it is on record (STEER-2).

Laws of this file:
- it is accepted of whatever kind; one that no node declares, or only ended ones, is not judged (decision 48);
- what is wrong without the input is not the input's fault, and is not told;
- what only the beginning of a node tells, the value of an expression for instance, is judged then;
- while routing is away nobody judges, and it is accepted: STEER-1 asks that the Run has not ended, and nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from libs.faults.fault import Fault
from services.runs.app.check_change import outlook_of
from services.runs.domain.expressions import Unresolved
from services.runs.domain.inputs import foreseen
from services.runs.domain.plan import Kind, Plan
from services.runs.domain.run import ENDED_NODES, Node, Run, Steered
from services.runs.ports import Routing

MEMBERS = ("text", "value")
JUDGED_NODES_MOST = 16
"""Of all that declare a kind, so many are asked about: the first that may still take it."""


def refuse_malformed(data: Mapping[str, Any]) -> None:
    """Fault validation_failed for what is neither one `text`, which is appended, nor one `value`, which replaces."""
    wrong = [(f"/data/{name}", "is not known; write `text` or `value`") for name in data if name not in MEMBERS]
    if "text" in data and not isinstance(data["text"], str):
        wrong.append(("/data/text", "must be a text"))
    if all(name in data for name in MEMBERS):
        wrong.append(("/data/text", "cannot stand beside `value`, which replaces the field; send it as the next input"))
    if not any(name in data for name in MEMBERS):
        wrong.append(("/data", "must hold `text`, which is appended, or `value`, which replaces"))
    if wrong:
        raise Fault.invalid(*wrong)


async def judge_steering(routing: Routing, plan: Plan, run: Run, kind: str, data: Mapping[str, Any]) -> None:
    """Fault validation_failed, by `/data/text` or `/data/value`, for what one of the nodes that may take it could never
    be served with."""
    new = Steered(kind, data)
    for node in list(_takers(plan, run, kind))[:JUDGED_NODES_MOST]:
        if wrong := await _objections(routing, plan, run, node, new):
            raise Fault.invalid(*wrong)


def _takers(plan: Plan, run: Run, kind: str) -> Iterator[Node]:
    """The nodes that declare the kind and may begin, of a map the item that would be next."""
    for name in plan.consumers.get(kind, ()):
        node = run.nodes[name]
        if node.state in ENDED_NODES:
            continue
        if node.kind != Kind.MAP:
            yield node
            continue
        items = (run.nodes[item] for item in node.items)
        yield next((item for item in items if item.state not in ENDED_NODES), _any_item(node))


def _any_item(node: Node) -> Node:
    """One of a map that has not looked at its list yet: what its expressions of the item give is not known."""
    return Node(f"{node.id}/any", Kind.GENERATE, parent=node.id)


async def _objections(routing: Routing, plan: Plan, run: Run, node: Node, new: Steered) -> list[tuple[str, str]]:
    path = plan.spec(node.id).consumes_steering[new.kind]
    field, member = f"/input/{path.replace('.', '/')}", "value" if "value" in new.data else "text"
    try:
        given, whole = foreseen(plan, run, node, new)
    except Unresolved:  # it goes into what is not there yet
        return []
    told = (await outlook_of(routing, plan, run, node, given, whole)).objections
    if told and whole:
        before = await outlook_of(routing, plan, run, node, *foreseen(plan, run, node))
        if before.fault is not None:
            return []
        told = tuple(each for each in told if each not in before.objections)
    where = f"(as input.{path} of {node.parent or node.id})"
    inside = [(at.removeprefix(field), why) for at, why in told if at == field or at.startswith(f"{field}/")]
    if inside or not whole:
        return [(f"/data/{member}{at if member == 'value' else ''}", f"{why} {where}") for at, why in inside]
    return [(f"/data/{member}", f"{at}: {why} {where}") for at, why in told]

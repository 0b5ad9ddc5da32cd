"""What a person changes is held against routing before it is on record: what could never be served is told by its
field, the question stays open, and nothing is lost (HUMAN-2, SEL-2)."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.domain.expressions import Unresolved, expressions
from services.runs.domain.inputs import prepared
from services.runs.domain.merging import changed
from services.runs.domain.money import order_of
from services.runs.domain.plan import Plan
from services.runs.domain.run import Node, Run
from services.runs.ports import Routing

PASSING = frozenset({"internal", "deadline_exceeded", "cancelled"})
ELSEWHERE = frozenset({"quota_exceeded"})
"""Says nothing of the change: it is what waits for its turn that is too much."""
ASKING_AT_ONCE = 16
MOST_TOLD = 20
SUPPLY = "/options/supply_id"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What routing says of a node as it would begin. `worst`: the most that one Task may cost, None where nobody can
    say; `objections`: (pointer, reason) of all that keeps it from ever being served; `fault`: nobody could be asked."""

    worst: Money | None = None
    objections: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None


def passing(fault: Fault) -> bool:
    """Whether another moment may mend it."""
    return fault.retryable or fault.code in PASSING


async def outlooks(
    routing: Routing, plan: Plan, run: Run, names: Iterable[str], at_node: str = "/node"
) -> Mapping[str, Outlook]:
    """By name: the outlook of these generating nodes in a Run as it would be. `at_node`: where a node is named."""
    places = asyncio.Semaphore(ASKING_AT_ONCE)

    async def one(node: Node) -> Outlook:
        async with places:
            return await _outlook(routing, plan, run, node, at_node)

    nodes = [run.nodes[name] for name in names]
    return dict(zip([node.id for node in nodes], await asyncio.gather(*map(one, nodes)), strict=True))


def refuse_change(told: Mapping[str, Outlook], names: Sequence[str]) -> None:
    """Fault validation_failed with what is wrong for these nodes; or the Fault for which nobody could be asked."""
    wrong: list[tuple[str, str]] = []
    for name in names:
        outlook = told[name]
        if outlook.fault is not None:
            raise outlook.fault
        wrong += [(at, f"{name}: {reason}" if len(names) > 1 else reason) for at, reason in outlook.objections]
    if wrong:
        raise Fault.invalid(*wrong[:MOST_TOLD])


async def _outlook(routing: Routing, plan: Plan, run: Run, node: Node, at_node: str) -> Outlook:
    return await outlook_of(routing, plan, run, node, *_given(plan, run, node), at_node)


async def outlook_of(
    routing: Routing, plan: Plan, run: Run, node: Node, given: Mapping[str, Any], whole: bool, at_node: str = "/node"
) -> Outlook:
    """The outlook of a generating node with that input; `whole`: nothing of it is still to come."""
    order = order_of(plan, run, replace(node, input=given))
    try:
        estimate = await routing.validate(run.tenant, order, node.supply, run.id)
    except Fault as fault:
        if fault.code in ELSEWHERE:
            return Outlook()
        if passing(fault):
            return Outlook(fault=fault)
        return Outlook(objections=tuple(_objections(fault, given, whole, at_node)))
    if estimate.worst is not None or estimate.passing or not whole:
        return Outlook(estimate.worst)
    return Outlook(objections=(("/supply" if node.supply else "/input", estimate.reason),))


def _given(plan: Plan, run: Run, node: Node) -> tuple[dict[str, Any], bool]:
    """(the input that it would begin with, whether that is all): what it names may be made again before it."""
    if plan.single:
        return changed(run.order.input, node.changes), True
    try:
        return prepared(plan, run, node)[0], True
    except Unresolved:
        said = {name: value for name, value in plan.spec(node.id).input.items() if not any(expressions(value))}
        return changed(node.input or said, node.changes), False


def _objections(fault: Fault, given: Mapping[str, Any], whole: bool, at_node: str) -> Iterator[tuple[str, str]]:
    if fault.code != "validation_failed":
        yield at_node, fault.message
    for error in fault.errors:
        _, part, field = (*error.pointer.split("/", 3), "", "")[:3]
        if error.pointer == SUPPLY:
            yield "/supply", error.reason
        elif part != "input":
            yield at_node, f"{error.pointer} {error.reason}"
        elif whole or field in given:
            yield error.pointer, error.reason

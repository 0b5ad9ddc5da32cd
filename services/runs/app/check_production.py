"""Check a production: everything that can be known of it before anything of it exists, in one answer (RUN-3).

Laws of this file:
- what is wrong with the document keeps nobody from asking about the models and the budget that it does name;
- what expressions will give is known only later: it is judged when a node begins.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from services.runs.domain.expressions import Malformed, expressions
from services.runs.domain.plan import Kind, Plan, Spec
from services.runs.domain.reading.fields import ROOT, pointer_to
from services.runs.domain.reading.production import Reading, read_document
from services.runs.domain.run import Order
from services.runs.ports import Budgets, Routing

ANY_PICTURE = {"image": {"artifact": "0" * 64}, "task": "recognize_text"}
"""What a reader of text is asked about beforehand: that it reads pictures, whichever."""


async def check_production(routing: Routing, budgets: Budgets, tenant: str, production: Mapping[str, Any]) -> Plan:
    """The Plan of a sound document. Fault `validation_failed` with everything that is wrong, each by its JSON pointer:
    its structure, its models, its budget. A Fault of whoever is asked is passed on if nothing else is wrong."""
    reading = read_document(production)
    faults = list(reading.faults)
    try:
        async for fault in _known_elsewhere(routing, budgets, tenant, reading):
            faults.append(fault)
    except Fault:
        if not faults:
            raise
    if faults or reading.plan is None:
        raise Fault.invalid(*dict.fromkeys(faults))
    return reading.plan


async def _known_elsewhere(
    routing: Routing, budgets: Budgets, tenant: str, reading: Reading
) -> AsyncIterator[tuple[str, str]]:
    parent = reading.budget.parent if reading.budget is not None else ""
    if parent and not await budgets.usable(parent, tenant):
        yield f"{ROOT}/budget/parent", f"there is no budget {parent!r} for this tenant"
    told = [pointer for pointer, _ in reading.faults]
    for node in reading.declared:
        spec, pointer, raw = node.spec, node.pointer, node.raw
        if spec is not None and spec.kind is Kind.MAP:
            spec, pointer, raw = spec.item, f"{pointer}/node", node.raw.get("node") or {}
        if spec is None:
            continue
        if spec.model:
            async for field, reason in _of_input(routing, tenant, spec, _spoilt(pointer, told)):
                yield pointer + field, reason
        for field, model in _readers(raw):
            if reason := await _of_reader(routing, tenant, model):
                yield pointer + field, reason


def _spoilt(pointer: str, told: Sequence[str]) -> frozenset[str]:
    """The fields of a node's input with which something is wrong already."""
    below = f"{pointer}/input/"
    return frozenset(at.removeprefix(below).partition("/")[0] for at in told if at.startswith(below))


async def _of_input(
    routing: Routing, tenant: str, spec: Spec, spoilt: frozenset[str]
) -> AsyncIterator[tuple[str, str]]:
    """(field of the node, reason): its model must be one that the tenant may use, take what is said of its input, and
    have a price."""
    said = {
        name: value for name, value in spec.input.items() if pointer_to("", name)[1:] not in spoilt and _literal(value)
    }
    whole = len(said) == len(spec.input)
    try:
        estimate = await routing.validate(tenant, Order(spec.model, said, spec.degradation, spec.billing_mode))
    except Fault as fault:
        if fault.retryable:
            raise
        if fault.code != "validation_failed":
            yield "/model", fault.message
        for error in fault.errors:
            root, _, rest = error.pointer.removeprefix("/").partition("/")
            # What is not said may come from an expression: that it lacks is known only where there is none.
            if root == "options" or (root == "input" and (whole or rest.partition("/")[0] in said)):
                yield error.pointer, error.reason
        return
    if estimate.worst is None and not estimate.passing and whole:
        yield "/model", f"{spec.model} has no price: {estimate.reason}"


def _literal(value: Any) -> bool:
    """Whether it is known already; what is written wrongly is told by reading."""
    try:
        return not any(expressions(value))
    except Malformed:
        return False


def _readers(raw: Any) -> list[tuple[str, str]]:
    """(field, model) of the checks that have text read."""
    checks = raw.get("checks") if isinstance(raw, Mapping) else None
    found = []
    for index, check in enumerate(checks if isinstance(checks, (list, tuple)) else ()):
        text = check.get("text") if isinstance(check, Mapping) else None
        model = text.get("model") if isinstance(text, Mapping) else None
        if isinstance(model, str) and model:
            found.append((f"/checks/{index}/text/model", model))
    return found


async def _of_reader(routing: Routing, tenant: str, model: str) -> str:
    """Why that model cannot read for a check; "" if it can."""
    try:
        estimate = await routing.validate(tenant, Order(model, ANY_PICTURE))
    except Fault as fault:
        if fault.retryable:
            raise
        wrong_kind = fault.code == "validation_failed"
        return f"{model} reads no text: name a public model of kind ocr" if wrong_kind else fault.message
    if estimate.worst is None and not estimate.passing:
        return f"{model} has no price: {estimate.reason}"
    return ""

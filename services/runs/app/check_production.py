"""Check a production: everything that can be known of it before anything of it exists, in one answer (RUN-3).

Laws of this file:
- the budget of a production hangs below its tenant's quota of money, if there is one: it is no way around it (AUTH-2);
- what is wrong with the document keeps nobody from asking about the models and the budget that it does name;
- what expressions will give is known only later: it is judged when a node begins.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from services.runs.app.judge_orders import Answer, is_away, judged
from services.runs.domain.expressions import Malformed, expressions
from services.runs.domain.money import evades
from services.runs.domain.plan import Kind, Plan, PlanBudget
from services.runs.domain.reading.fields import ROOT, pointer_to
from services.runs.domain.reading.production import Reading, read_document
from services.runs.domain.run import Order
from services.runs.ports import Budgets, Routing

ANY_PICTURE = {"image": {"artifact": "0" * 64}, "task": "recognize_text"}
"""What a reader of text is asked about beforehand: that it reads pictures, whichever."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A sound document. `parent`: the budget of its tenant's quota that its own hangs below, "" = as it says."""

    plan: Plan
    parent: str = ""


async def check_production(
    routing: Routing, budgets: Budgets, tenant: str, run_id: str, production: Mapping[str, Any], now: datetime
) -> Checked:
    """The Plan of a sound document. Fault `validation_failed` with everything that is wrong, each by its JSON pointer:
    its structure, its models, its budget. A Fault of whoever is asked is passed on if nothing else is wrong."""
    reading = read_document(production)
    faults = list(reading.faults)
    parent = ""
    try:
        async for fault in _known_elsewhere(routing, budgets, tenant, run_id, reading):
            faults.append(fault)
        if reading.budget is not None:
            parent = await _quota(routing, tenant, reading.budget, now, faults)
    except Fault:
        if not faults:
            raise
    if faults or reading.plan is None:
        raise Fault.invalid(*dict.fromkeys(faults))
    return Checked(reading.plan, parent)


async def _quota(
    routing: Routing, tenant: str, budget: PlanBudget, now: datetime, faults: list[tuple[str, str]]
) -> str:
    """The budget that this one hangs below because of its tenant's quota; adds what is wrong with it to `faults`."""
    quota = await routing.quota(tenant, now)
    if quota is None:
        return ""
    if evades(budget.parent, quota):
        remedy = f"leave it out, and the production hangs below {quota.budget_id}"
        faults.append((f"{ROOT}/budget/parent", f"is no operator's budget, and the tenant has a quota: {remedy}"))
    elif budget.parent in ("", quota.budget_id):
        if budget.currency not in ("", quota.currency):
            said = f"the tenant's quota counts in {quota.currency}: write {quota.currency}, and amounts in it"
            faults.append((f"{ROOT}/budget/currency", said))
        return quota.budget_id
    return ""


async def _known_elsewhere(
    routing: Routing, budgets: Budgets, tenant: str, run_id: str, reading: Reading
) -> AsyncIterator[tuple[str, str]]:
    parent = reading.budget.parent if reading.budget is not None else ""
    if parent and not await budgets.usable(parent, tenant):
        yield f"{ROOT}/budget/parent", f"there is no budget {parent!r} for this tenant"
    questions = list(_questions(reading))
    answers = await judged(routing, tenant, run_id, [question.order for question in questions])
    for question, answer in zip(questions, answers, strict=True):
        for field, reason in question.objections(answer):
            yield question.pointer + field, reason
    if away := next((answer for answer in answers if is_away(answer)), None):
        raise away


@dataclass(frozen=True, slots=True)
class _OfInput:
    """Its model must be one that the tenant may use, take what is said of its input, and have a price.

    `whole`: nothing of the input is left to expressions.
    """

    pointer: str
    order: Order
    whole: bool

    def objections(self, answer: Answer) -> Iterator[tuple[str, str]]:
        """(field of the node, reason)."""
        if isinstance(answer, Fault):
            if is_away(answer):
                return
            if answer.code != "validation_failed":
                yield "/model", answer.message
            for error in answer.errors:
                root, _, rest = error.pointer.removeprefix("/").partition("/")
                said = rest.partition("/")[0] in self.order.input
                # What is not said may come from an expression: that it lacks is known only where there is none.
                if root == "options" or (root == "input" and (self.whole or said)):
                    yield error.pointer, error.reason
        elif answer is not None and answer.worst is None and not answer.passing and self.whole:
            yield "/model", f"{self.order.model} has no price: {answer.reason}"


@dataclass(frozen=True, slots=True)
class _OfReader:
    """A model must be able to read for a check."""

    pointer: str
    order: Order

    def objections(self, answer: Answer) -> Iterator[tuple[str, str]]:
        """("", why it cannot)."""
        model = self.order.model
        if isinstance(answer, Fault):
            if is_away(answer):
                return
            wrong_kind = answer.code == "validation_failed"
            yield "", f"{model} reads no text: name a public model of kind ocr" if wrong_kind else answer.message
        elif answer is not None and answer.worst is None and not answer.passing:
            yield "", f"{model} has no price: {answer.reason}"


def _questions(reading: Reading) -> Iterator[_OfInput | _OfReader]:
    """What routing is to say of the document, in its order."""
    told = _spoilt(pointer for pointer, _ in reading.faults)
    for node in reading.declared:
        spec, pointer, raw = node.spec, node.pointer, node.raw
        if spec is not None and spec.kind is Kind.MAP:
            spec, pointer, raw = spec.item, f"{pointer}/node", node.raw.get("node") or {}
        if spec is None:
            continue
        if spec.model:
            spoilt = told.get(pointer, ())
            said = {
                name: value
                for name, value in spec.input.items()
                if pointer_to("", name)[1:] not in spoilt and _literal(value)
            }
            order = Order(spec.model, said, spec.degradation, spec.billing_mode)
            yield _OfInput(pointer, order, len(said) == len(spec.input))
        for field, model in _readers(raw):
            yield _OfReader(pointer + field, Order(model, ANY_PICTURE))


def _spoilt(told: Iterable[str]) -> Mapping[str, set[str]]:
    """By node, the fields of its input with which something is wrong already."""
    found: dict[str, set[str]] = {}
    for at in told:
        node, inside, below = at.partition("/input/")
        if inside:
            found.setdefault(node, set()).add(below.partition("/")[0])
    return found


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

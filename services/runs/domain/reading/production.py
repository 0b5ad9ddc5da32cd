"""A whole document: its own fields, its nodes, and what holds between them (RUN-3).

Laws of this file:
- a document is accepted whole or refused with everything that is wrong with it; nothing is repaired silently;
- nothing paid stands without a budget;
- a document that is too large or too deep is refused before it is looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from services.runs.domain.plan import MAIN, Kind, Plan, PlanBudget, ReviewLoad, Spec
from services.runs.domain.reading.fields import ROOT, Faults, Fields, pointer_to
from services.runs.domain.reading.links import Declared, Links
from services.runs.domain.reading.nodes import read_node
from services.runs.domain.reading.notation import CURRENCY, duration_of, is_number, moment_of
from services.runs.domain.reading.ordering import in_order, told

MOST_NODES = 2000
DEEPEST = 32
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a document: its Plan, or every fault as (JSON pointer into the body, reason).

    `declared` and `budget` hold what could be read beside the faults, so that others can tell what they know of it.
    """

    plan: Plan | None
    faults: Faults
    declared: Sequence[Declared] = ()
    budget: PlanBudget | None = None


def read_plan(document: Any) -> tuple[Plan | None, Faults]:
    """The Plan of a document and no faults, or None and every fault as (JSON pointer into the body, reason)."""
    reading = read_document(document)
    return reading.plan, reading.faults


def read_document(document: Any) -> Reading:
    """A document as far as it can be read."""
    faults: Faults = []
    too_much = _too_much(document)
    if too_much:
        return Reading(None, [too_much])
    fields = Fields.of(document, ROOT, faults)
    if fields is None:
        return Reading(None, faults)
    _unreadable(document, ROOT, faults)
    name = fields.text("production", longest=200)
    inputs = fields.object("inputs")
    declared = _declared(fields)
    budget = _budget(fields)
    plan = Plan(
        name=name,
        nodes=_linked(inputs, declared, faults),
        inputs=inputs,
        budget=budget,
        deadline=_deadline(fields),
        reviews=_reviews(fields),
        concurrency=fields.whole("concurrency", 0, 0, MOST),
    )
    paid = [spec.id for spec in plan.nodes.values() if is_paid(spec)]
    if paid and not fields.has("budget"):
        fields.fault("budget", f'is required, because {_some(paid)} must be paid: {{currency: CNY, cost: "200.00"}}')
    fields.close()
    return Reading(None if faults else plan, faults, declared, budget)


def single_plan(
    model: str,
    given: Mapping[str, Any],
    *,
    degradation: str = "",
    billing_mode: str = "",
    priority: str = "",
    deadline: datetime | timedelta | None = None,
    budget_id: str = "",
) -> Plan:
    """The Plan of a single generation (RUN-1a). Its input is literal; `budget_id` is a budget that it is paid from."""
    node = Spec(
        MAIN,
        Kind.GENERATE,
        model=model,
        input=given,
        degradation=degradation,
        billing_mode=billing_mode,
        priority=priority,
    )
    budget = PlanBudget(currency="", parent=budget_id) if budget_id else None
    return Plan(name="", nodes={MAIN: node}, budget=budget, deadline=deadline, single=True)


def is_paid(spec: Spec) -> bool:
    """Whether a node calls models: it generates, or it reads text in what others made."""
    return spec.kind in (Kind.GENERATE, Kind.MAP) or any(check.name == "text" for check in spec.checks)


def _too_much(document: Any) -> tuple[str, str] | None:
    """Why a document is not looked at, or None. Level by level: what is nested without end is not followed."""
    level, depth = [document], 0
    while level:
        if depth > DEEPEST:
            return ROOT, f"is nested deeper than {DEEPEST} levels; make it flatter"
        depth += 1
        level = [inner for outer in level for inner in _members(outer) if isinstance(inner, (Mapping, list, tuple))]
    nodes = document.get("nodes") if isinstance(document, Mapping) else None
    if not isinstance(nodes, (list, tuple)):
        return None
    overs = [node.get("over") for node in nodes if isinstance(node, Mapping)]
    count = len(nodes) + sum(len(over) for over in overs if isinstance(over, (list, tuple)))
    if count > MOST_NODES:
        reason = f"must be at most {MOST_NODES} with the items of maps, not {count}; make several productions of it"
        return f"{ROOT}/nodes", reason
    return None


def _members(value: Any) -> Any:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()


def _unreadable(value: Any, pointer: str, faults: Faults) -> None:
    """Numbers that no JSON has: they would end what is kept and compared."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not is_number(value):
        faults.append((pointer, "is a number beyond what is exact; send it as a text"))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _unreadable(inner, pointer_to(pointer, name), faults)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            _unreadable(inner, pointer_to(pointer, index), faults)


def _declared(fields: Fields) -> list[Declared]:
    """Every node that is an object, in the order of the document."""
    entries = fields.list("nodes")
    if not entries:
        fields.fault("nodes", "must hold at least one node")
    declared: list[Declared] = []
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        pointer = pointer_to(fields.at("nodes"), index)
        spec = read_node(entry, pointer, fields.faults)
        if not isinstance(entry, Mapping):
            continue
        declared.append(Declared(pointer, entry, spec))
        name = entry.get("id")
        if isinstance(name, str) and first.setdefault(name, index) != index:
            reason = f"is {name!r} like node {first[name]}, counted from 0; give each node an id of its own"
            fields.faults.append((f"{pointer}/id", reason))
    return declared


def _linked(inputs: Mapping[str, Any], declared: list[Declared], faults: Faults) -> dict[str, Spec]:
    """The nodes in their order, each with all that it needs."""
    nodes: dict[str, Declared] = {}
    for node in declared:
        name = node.raw.get("id")
        if isinstance(name, str) and name:
            nodes.setdefault(name, node)
    links = Links(inputs, nodes, faults)
    specs: dict[str, Spec] = {}
    for node in declared:
        implied = links.follow(node)
        if node.spec is None or nodes.get(node.spec.id) is not node:
            continue
        needs = dict.fromkeys((*(name for name in node.spec.needs if name in nodes), *implied))
        specs[node.spec.id] = replace(node.spec, needs=tuple(needs))
    order, circles = in_order({name: [need for need in spec.needs if need in specs] for name, spec in specs.items()})
    for circle in circles:
        reason = f"needs itself: {told(circle)}; take one of these needs away"
        faults.append((nodes[circle[0]].pointer, reason))
    return {name: specs[name] for name in order}


def _budget(fields: Fields) -> PlanBudget | None:
    budget = fields.nested("budget")
    if budget is None:
        return None
    currency = budget.text("currency", longest=3)
    if currency and not CURRENCY.fullmatch(currency):
        budget.fault("currency", "must be three capital letters, for example CNY")
    read = PlanBudget(
        currency=currency,
        cost=budget.amount("cost"),
        soft=budget.amount("soft"),
        attempts=budget.whole("attempts", 0, 1, MOST),
        review_minutes=budget.whole("review_minutes", 0, 1, MOST),
        soft_review_minutes=budget.whole("soft_review_minutes", 0, 1, MOST),
        parent=budget.text("parent", "", longest=200),
    )
    if not any(budget.has(name) for name in ("cost", "attempts", "parent")):
        budget.fault("cost", "is required where neither `attempts` nor `parent` limits: write an amount")
    if read.soft is not None and (not budget.has("cost") or (read.cost is not None and read.soft > read.cost)):
        budget.fault("soft", "must not be above `cost`, which it warns of")
    if 0 < read.review_minutes < read.soft_review_minutes:
        budget.fault("soft_review_minutes", "must not be above `review_minutes`, which it warns of")
    budget.close()
    return read


def _deadline(fields: Fields) -> datetime | timedelta | None:
    value = fields.anything("deadline")
    found = duration_of(value) or moment_of(value)
    if value is not None and found is None:
        fields.fault("deadline", "must be a duration from now (2d, 36h) or a time with its zone (2027-01-31T18:00:00Z)")
    return found


def _reviews(fields: Fields) -> ReviewLoad:
    usual = ReviewLoad()
    reviews = fields.nested("reviews")
    if reviews is None:
        return usual
    most = reviews.whole("most", usual.most, 1, MOST)
    resume = reviews.whole("resume", min(usual.resume, most // 2), 0, MOST)
    if resume >= most:
        reviews.fault("resume", f"must be below `most`, which is {most}: work goes on when that few are open")
    oldest, horizon = reviews.duration("oldest"), reviews.duration("horizon")
    minutes = reviews.whole("minutes", usual.minutes, 1, MOST)
    reviews.close()
    return ReviewLoad(most, resume, oldest or usual.oldest, horizon or usual.horizon, minutes)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

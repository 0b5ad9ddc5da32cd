"""One node of a document, by its kind. Names are only collected here; `links` looks whether they lead anywhere."""

import re
from typing import Any

from services.runs.domain.expressions import ROOTS, digests_in
from services.runs.domain.fan_out import MOST_ITEMS, items_of
from services.runs.domain.plan import (
    DEFAULT_ATTEMPTS,
    DEFAULT_REVIEW,
    DEPUTY,
    Canary,
    Kind,
    NodeBudget,
    Rank,
    Review,
    Spec,
    ValueClass,
)
from services.runs.domain.reading.checks import read_checks
from services.runs.domain.reading.fields import Fields, pointer_to, texts_in
from services.runs.domain.reading.notation import DIGEST, NODE_ID

COMPENSATIONS = ("invalidate_artifact",)
DEGRADATIONS = ("strict", "best_effort")
PRIORITIES = ("high", "normal", "low")
BILLING_MODES = ("per_second", "per_request", "per_image", "per_token", "per_character", "per_page")
MOST_ATTEMPTS = 100
STEERED_PATH = re.compile(r"input((?:\.[A-Za-z0-9_-]{1,64}){1,16})")

OF_A_MAP = dict.fromkeys(
    ("model", "input", "options", "budget", "consumes_steering", "checks", "memo", "value_class", "compensation"),
    "of a map it stands in its `node`, which every item becomes",
)
OF_ITEMS = {
    "id": "an item has the id of its entry in `over`",
    "needs": "`needs` stand at the map",
    "over": "maps do not nest; give this one a node of its own and name its items there",
    "node": "maps do not nest; give this one a node of its own and name its items there",
}


def read_node(value: Any, pointer: str, faults: list[tuple[str, str]]) -> Spec | None:
    """The node as declared, with its declared `needs`; None if it is not told what it is."""
    fields = Fields.of(value, pointer, faults)
    if fields is None:
        return None
    node_id = _id(fields)
    needs = _needs(fields)
    try:
        kind = Kind(fields.anything("kind"))
    except ValueError:
        fields.fault("kind", f"must be one of {', '.join(Kind)}")
        return None
    if kind is Kind.GENERATE:
        return _generate(fields, node_id, needs)
    if kind is Kind.MAP:
        return _map(fields, node_id, needs)
    return _gate(fields, node_id, needs) if kind is Kind.GATE else _check(fields, node_id, needs)


def _id(fields: Fields) -> str:
    node_id = fields.anything("id")
    if not isinstance(node_id, str) or not NODE_ID.fullmatch(node_id):
        fields.fault("id", "must be a text of 1 to 64 letters, digits, _ and -")
        return ""
    if node_id in ROOTS:
        fields.fault("id", f"must not be {node_id!r}, which expressions use for something else")
    return node_id


def _needs(fields: Fields) -> tuple[str, ...]:
    needs = []
    for index, name in enumerate(fields.list("needs")):
        if isinstance(name, str):
            needs.append(name)
        else:
            fields.faults.append((pointer_to(fields.at("needs"), index), "must be the id of a node"))
    return tuple(dict.fromkeys(needs))


def _generate(fields: Fields, node_id: str, needs: tuple[str, ...], elsewhere: dict[str, str] | None = None) -> Spec:
    if not fields.has("input"):
        fields.fault("input", "is required: write the fields that its model takes")
    options = fields.nested("options")
    spec = Spec(
        id=node_id,
        kind=Kind.GENERATE,
        needs=needs,
        value_class=fields.choice("value_class", ValueClass, ValueClass.NORMAL),
        model=fields.text("model", longest=200),
        input=fields.object("input"),
        degradation=options.word("degradation", DEGRADATIONS, "") if options else "",
        billing_mode=options.word("billing_mode", BILLING_MODES, "") if options else "",
        priority=options.word("priority", PRIORITIES, "") if options else "",
        budget=_budget(fields),
        consumes_steering=_steering(fields),
        checks=read_checks(fields),
        memo=fields.flag("memo"),
        compensation=fields.word("compensation", COMPENSATIONS, ""),
    )
    if options:
        options.close()
    fields.close(elsewhere)
    return spec


def _budget(fields: Fields) -> NodeBudget:
    budget = fields.nested("budget")
    if budget is None:
        return NodeBudget()
    read = NodeBudget(
        attempts=budget.whole("attempts", DEFAULT_ATTEMPTS, 1, MOST_ATTEMPTS),
        cost=budget.amount("cost"),
        wall_time=budget.duration("wall_time"),
    )
    budget.close()
    return read


def _steering(fields: Fields) -> dict[str, str]:
    paths: dict[str, str] = {}
    declared = fields.object("consumes_steering")
    for kind, path in declared.items():
        place = pointer_to(fields.at("consumes_steering"), kind)
        found = STEERED_PATH.fullmatch(path) if isinstance(path, str) else None
        if not isinstance(kind, str) or not 0 < len(kind) <= 64:
            fields.faults.append((place, "must have a kind of 1 to 64 characters for a name"))
        elif found is None:
            fields.faults.append((place, "must be the path of a field of the input, for example input.prompt"))
        else:
            paths[kind] = found[1].removeprefix(".")
    return paths


def _gate(fields: Fields, node_id: str, needs: tuple[str, ...]) -> Spec:
    review = Review(
        deadline=fields.duration("deadline") or DEFAULT_REVIEW,
        deputy=fields.text("deputy", DEPUTY, longest=200),
        rank=fields.choice("rank", Rank, Rank.REST),
        question=fields.text("question", ""),
    )
    worth = fields.choice("value_class", ValueClass, ValueClass.NORMAL)
    subject = fields.anything("subject")
    spec = Spec(id=node_id, kind=Kind.GATE, needs=needs, value_class=worth, subject=subject, review=review)
    fields.close({"checks": "a gate waits for a person; put checks into a node of kind check that it needs"})
    return spec


def _check(fields: Fields, node_id: str, needs: tuple[str, ...]) -> Spec:
    if not fields.list("checks"):
        fields.fault("checks", "must name at least one check, for example decodes")
    subject = fields.anything("subject")
    if subject is None and not needs:
        fields.fault("needs", "must name what is checked, or `subject` must")
    elif subject is not None:
        _looked_at(fields, subject, needs)
    worth, checks = fields.choice("value_class", ValueClass, ValueClass.NORMAL), read_checks(fields)
    spec = Spec(id=node_id, kind=Kind.CHECK, needs=needs, value_class=worth, subject=subject, checks=checks)
    fields.close()
    return spec


def _looked_at(fields: Fields, subject: Any, needs: tuple[str, ...]) -> None:
    """Report a subject in which somebody may think that files are looked at, and none are."""
    texts = list(texts_in(subject, fields.at("subject")))
    bare = [(pointer, text) for pointer, text in texts if DIGEST.fullmatch(text) and not pointer.endswith("/artifact")]
    for pointer, text in bare:
        fields.faults.append((pointer, f"is a digest alone, which is no file; write {{artifact: {text[:6]}…}}"))
    if not (bare or needs or digests_in(subject) or any("${" in text for _, text in texts)):
        remedy = 'write {artifact: SHA256} or "${node.artifact}", or name in `needs` what is checked'
        fields.fault("subject", f"holds no file to look at: {remedy}")


def _map(fields: Fields, node_id: str, needs: tuple[str, ...]) -> Spec:
    tolerate = fields.nested("tolerate")
    failures = tolerate.whole("failures", 0, 0, MOST_ITEMS) if tolerate else 0
    if tolerate:
        tolerate.close()
    spec = Spec(
        id=node_id,
        kind=Kind.MAP,
        needs=needs,
        over=_over(fields),
        item=_item(fields),
        canary=_canary(fields),
        tolerate=failures,
        concurrency=fields.whole("concurrency", 0, 0, MOST_ITEMS),
        trial=fields.whole("trial", 0, 0, MOST_ITEMS),
    )
    fields.close(OF_A_MAP)
    return spec


def _over(fields: Fields) -> Any:
    over = fields.anything("over")
    if isinstance(over, (list, tuple)):
        if not over:
            fields.fault("over", "must hold at least one item")
        _, wrong = items_of(over)
        fields.faults.extend((fields.at("over") + inner, reason) for inner, reason in wrong)
    elif not isinstance(over, str) or "${" not in over:
        fields.fault("over", 'must be a list of objects, or what gives one: "${node.items}", "${inputs.shots}"')
    return over


def _item(fields: Fields) -> Spec | None:
    node = fields.nested("node")
    if node is None:
        if not fields.has("node"):
            fields.fault("node", "is required: write what every item becomes, for example {kind: generate, model: …}")
        return None
    kind = node.anything("kind")
    if kind is not None and kind != Kind.GENERATE:
        node.fault("kind", "must be generate: an item is one generation")
    return _generate(node, "", (), OF_ITEMS)


def _canary(fields: Fields) -> Canary | None:
    canary = fields.nested("canary")
    if canary is None:
        return None
    read = Canary(
        per=canary.text("per", "shot_class", longest=64),
        count=canary.whole("count", 1, 1, MOST_ITEMS),
        by_person=canary.word("release", ("auto", "gate"), "auto") == "gate",
    )
    canary.close()
    return read

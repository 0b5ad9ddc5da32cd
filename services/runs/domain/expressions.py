"""`${…}` in a production: what a value names, and what it becomes once those names have values.

Laws of this file:
- an expression is a path of names with dots and nothing more: `${inputs.title}`, `${item.ref.0}`, `${shot.artifact}`;
- a text that is exactly one expression becomes the value itself; within a longer text it becomes text;
- `$${` is a `${` that is meant literally; names of objects are never expressions;
- one parser serves the check of a document and its execution, so that both read a text alike.

| root | gives |
|---|---|
| `inputs` | the document's `inputs` |
| `item` | within a map's `node`: the item, with its `id` |
| a `generate` node | `artifact` (the first one), `artifacts`, `output` |
| a `map` | `items` (those that succeeded: their own fields with `artifact`, `artifacts`, `output`), `artifacts` |
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from libs.kernel.canonical import canonical_text
from services.runs.domain.plan import Plan
from services.runs.domain.run import Artifact

INPUTS = "inputs"
ITEM = "item"
ROOTS = frozenset({INPUTS, ITEM})
"""No node may have these names."""
MADE_ATTRIBUTES = ("artifact", "artifacts", "output")
MAP_ATTRIBUTES = ("items", "artifacts")
LISTED = 12
"""Names that a reason shows of many."""

_OPENING = re.compile(r"\$\$\{|\$\{")
_PATH = re.compile(r"[A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){0,15}")


class Malformed(ValueError):
    """A text holds something that begins as an expression and is none. The words tell what to write."""


class Unresolved(LookupError):
    """An expression names something that is not there. The words tell what is."""

    def __init__(self, expression: str, reason: str) -> None:
        super().__init__(f"${{{expression}}}: {reason}")
        self.expression = expression
        self.reason = reason


class Expression(NamedTuple):
    """One `${root.rest}`; `rest` as it stood between the dots."""

    root: str
    rest: tuple[str, ...]

    @property
    def text(self) -> str:
        """What stands between the braces."""
        return ".".join((self.root, *self.rest))


@dataclass(frozen=True, slots=True)
class Made:
    """One item of a map that succeeded: its own fields, and what it gave."""

    fields: Mapping[str, Any]
    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """What a finished node gave. `items` None: it is no map; a map's artifacts are those of its items, in order."""

    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Made, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions can name at one place. `item` None: it is not within a map."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    item: Mapping[str, Any] | None = None
    given: Mapping[str, Given] = field(default_factory=dict)
    """By node id: the nodes that have finished."""


def parse(text: str) -> tuple[str | Expression, ...]:
    """The pieces of a text, literal ones with their escapes undone. Malformed."""
    pieces: list[str | Expression] = []
    literal, at = "", 0
    while found := _OPENING.search(text, at):
        literal += text[at : found.start()]
        if found[0] == "$${":
            literal, at = literal + "${", found.end()
            continue
        path = _PATH.match(text, found.end())
        if path is None or text[path.end() : path.end() + 1] != "}":
            raise Malformed(
                f"holds {text[found.start() : found.start() + 24]!r}, which is no expression; write ${{node.artifact}},"
                " names joined by dots, or $${ for a ${ that is meant literally"
            )
        root, *rest = path[0].split(".")
        pieces += [literal] if literal else []
        pieces.append(Expression(root, tuple(rest)))
        literal, at = "", path.end() + 1
    literal += text[at:]
    return (*pieces, literal) if literal or not pieces else tuple(pieces)


def expressions(value: Any) -> Iterator[Expression]:
    """Every expression in the texts of a value, in order. Malformed."""
    if isinstance(value, str):
        yield from (piece for piece in parse(value) if isinstance(piece, Expression))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from expressions(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from expressions(inner)


def references(value: Any) -> set[str]:
    """The nodes that a value names. Malformed."""
    return {expression.root for expression in expressions(value)} - ROOTS


def resolve(value: Any, scope: Scope) -> Any:
    """The value with every expression replaced; JSON values. Unresolved; Malformed."""
    if isinstance(value, str):
        return _text(parse(value), scope)
    if isinstance(value, Mapping):
        return {name: resolve(inner, scope) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve(inner, scope) for inner in value]
    return value


def resolved_input(plan: Plan, node_id: str, scope: Scope) -> dict[str, Any]:
    """The input of a node or, for `map/item`, of an item. What somebody sent as a single generation is taken literally:
    a prompt may hold a `${`. Unresolved."""
    given = plan.spec(node_id).input
    return dict(given) if plan.single else {name: resolve(value, scope) for name, value in given.items()}


def material(artifact: Artifact) -> dict[str, str]:
    """An artifact as inputs take it."""
    return {"artifact": artifact.sha256}


def digests_in(value: Any) -> tuple[str, ...]:
    """The files that a value holds, each once and in order: every `{"artifact": SHA256}`, however deep."""
    return tuple(dict.fromkeys(_digests_in(value)))


def _digests_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "artifact" and isinstance(inner, str):
                yield inner
            else:
                yield from _digests_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _digests_in(inner)


def _text(pieces: tuple[str | Expression, ...], scope: Scope) -> Any:
    if len(pieces) == 1:
        return pieces[0] if isinstance(pieces[0], str) else _value(pieces[0], scope)
    return "".join(piece if isinstance(piece, str) else _spliced(piece, scope) for piece in pieces)


def _spliced(expression: Expression, scope: Scope) -> str:
    value = _value(expression, scope)
    if isinstance(value, (dict, list)):
        raise Unresolved(
            expression.text, "gives a list or an object, which cannot stand within a text; let it stand alone"
        )
    return value if isinstance(value, str) else canonical_text(value)


def _value(expression: Expression, scope: Scope) -> Any:
    root, rest = expression
    if root == INPUTS:
        return _walk(expression, scope.inputs, rest)
    if root == ITEM:
        if scope.item is None:
            raise Unresolved(expression.text, "there is an item only within the `node` of a map")
        return _walk(expression, scope.item, rest)
    if root not in scope.given:
        raise Unresolved(expression.text, f"nothing of that name has finished; there is {listed(scope.given)}")
    return _of_node(expression, scope.given[root])


def _of_node(expression: Expression, given: Given) -> Any:
    attribute, *rest = expression.rest or ("",)
    if attribute not in (MADE_ATTRIBUTES if given.items is None else MAP_ATTRIBUTES):
        there = MADE_ATTRIBUTES if given.items is None else MAP_ATTRIBUTES
        raise Unresolved(expression.text, f"name one of {', '.join(there)}")
    if given.items is not None:
        items = [_fields(item) for item in given.items]
        kept = given.artifacts or [artifact for item in given.items for artifact in item.artifacts]
        value: Any = items if attribute == "items" else [material(artifact) for artifact in kept]
        return _walk(expression, value, rest)
    if attribute == "output":
        return _walk(expression, given.output, rest)
    if attribute == "artifacts":
        return _walk(expression, [material(artifact) for artifact in given.artifacts], rest)
    if not given.artifacts:
        raise Unresolved(expression.text, "it gave no file")
    return _walk(expression, material(given.artifacts[0]), rest)


def _fields(item: Made) -> dict[str, Any]:
    given: dict[str, Any] = {"artifacts": [material(artifact) for artifact in item.artifacts], "output": item.output}
    if item.artifacts:
        given["artifact"] = material(item.artifacts[0])
    return {**item.fields, **given}


def _walk(expression: Expression, value: Any, path: tuple[str, ...] | list[str]) -> Any:
    """Go down objects by name and lists by index."""
    for name in path:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise Unresolved(expression.text, f"there is no {name!r}; there is {there(value)}")
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value


def there(value: Any) -> str:
    """What a path can go on to from a value, in words."""
    if isinstance(value, Mapping):
        return listed(value)
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}, counted from 0"
    return "a value without fields"


def listed(names: Iterable[str]) -> str:
    """The first of some names, in words."""
    first = list(islice(names, LISTED + 1))
    return ", ".join(map(str, first[:LISTED])) + (" …" if len(first) > LISTED else "") if first else "nothing"

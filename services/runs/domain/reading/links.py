"""Whether every name in a document leads somewhere (RUN-3).

A name is followed as far as the document alone can tell: into `inputs`, into items that are written out, to what a kind
of node gives. What a node will have put into its `output` only the Run can tell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.runs.domain.expressions import (
    INPUTS,
    ITEM,
    MADE_ATTRIBUTES,
    MAP_ATTRIBUTES,
    ROOTS,
    Expression,
    Malformed,
    listed,
    parse,
    there,
)
from services.runs.domain.fan_out import items_of
from services.runs.domain.plan import Canary, Kind, Spec
from services.runs.domain.reading.fields import ROOT, Faults, pointer_to, texts_in

EXPRESSED = ("input", "subject", "over", "checks")
"""The fields of a node in which expressions may stand."""
UNKNOWN: Any = object()
"""A value that only the Run can tell."""
ITEM_MADE = {"artifact": UNKNOWN, "artifacts": UNKNOWN, "output": UNKNOWN}
SHOT_CLASS = Canary().per


@dataclass(frozen=True, slots=True)
class Declared:
    """One node: where it stands, how it is written, and what was read of it (None: not even its kind)."""

    pointer: str
    raw: Mapping[str, Any]
    spec: Spec | None


@dataclass(slots=True)
class Items:
    """The items of a map as far as they are written out; `written` None: only the Run can tell."""

    written: Sequence[Mapping[str, Any]] | None = None
    _lacks: dict[tuple[str, ...], str] = field(default_factory=dict)

    def lack(self, path: tuple[str, ...]) -> str:
        """Which item has nothing at that path, "" = all have; looked for once, however often it is named."""
        if path not in self._lacks:
            looked = ((item, walk(item, path)[1]) for item in self.written or ())
            found = next(((item, reason) for item, reason in looked if reason), None)
            self._lacks[path] = f"in item {found[0].get('id')}, {found[1]}" if found else ""
        return self._lacks[path]


@dataclass(slots=True)
class Links:
    """The names of one document."""

    inputs: Mapping[str, Any]
    nodes: Mapping[str, Declared]
    """By id; of nodes with one id, the first."""
    faults: Faults
    _lists: dict[tuple[str, ...], Items] = field(default_factory=dict)
    """By where they are written and whether a map has been over them: many maps may share one list."""
    _told: set[str] = field(default_factory=set)

    def follow(self, node: Declared) -> list[str]:
        """Report the names of a node that lead nowhere; answers the nodes that its expressions need, each once."""
        implied: dict[str, None] = {}
        items = self._items(node.spec) if node.spec is not None and node.spec.kind is Kind.MAP else Items()
        for pointer, text, in_item in _texts(node):
            for expression in self._text(pointer, text, in_item, items):
                if expression.root in self.nodes and expression.root not in ROOTS:
                    implied[expression.root] = None
        if node.spec is not None:
            self._declared(node.pointer, node.spec, items)
        return list(implied)

    def _declared(self, pointer: str, spec: Spec, items: Items) -> None:
        for name in spec.needs:
            if name not in self.nodes:
                self._report(f"{pointer}/needs", f"names {name!r}, which is no node; there is {listed(self.nodes)}")
        self._steering(pointer, spec)
        if spec.item is not None:
            self._steering(f"{pointer}/node", spec.item)
        per = spec.canary.per if spec.canary else SHOT_CLASS
        if per != SHOT_CLASS and items.written and not any(per in item for item in items.written):
            self._report(f"{pointer}/canary/per", f"names {per!r}, a field that no item has; give the items one")

    def _steering(self, pointer: str, spec: Spec) -> None:
        for kind, path in spec.consumes_steering.items():
            _, reason = walk(spec.input, path.split("."))
            if reason:
                place = pointer_to(f"{pointer}/consumes_steering", kind)
                self._report(place, f"leads to no field of the input: {reason}")

    def _text(self, pointer: str, text: str, in_item: bool, items: Items) -> Iterator[Expression]:
        try:
            pieces = parse(text)
        except Malformed as error:
            self._report(pointer, str(error))
            return
        for piece in pieces:
            if isinstance(piece, str):
                continue
            yield piece
            value, reason = self._value(piece, in_item, items)
            if not reason and len(pieces) > 1 and isinstance(value, (Mapping, list, tuple)):
                reason = "gives a file, a list or an object, which cannot stand within a text; let it stand alone"
            if reason:
                self._report(pointer, f"${{{piece.text}}}: {reason}")

    def _value(self, expression: Expression, in_item: bool, items: Items) -> tuple[Any, str]:
        """(What the document tells of its value, why it leads nowhere or "")."""
        root, rest = expression
        if root == INPUTS:
            return walk(self.inputs, rest)
        if root == ITEM:
            if not in_item:
                return UNKNOWN, "there is an item only within the `node` of a map"
            return UNKNOWN, items.lack(rest)
        if root not in self.nodes:
            return UNKNOWN, f"there is no node {root!r}; there is inputs, {listed(self.nodes)}"
        spec = self.nodes[root].spec
        return (UNKNOWN, "") if spec is None else _given(spec.kind, rest)

    def _items(self, spec: Spec) -> Items:
        """The items of a map: written out, in the inputs, or those of another map with what that made of them."""
        seen = {spec.id}
        made: dict[str, Any] = {}
        while isinstance(spec.over, str):
            piece = _alone(spec.over)
            other = self.nodes.get(piece.root) if piece is not None else None
            if piece is not None and piece.root == INPUTS:
                return self._written(piece, made)
            if piece is None or piece.rest != ("items",) or piece.root in seen or other is None or other.spec is None:
                return Items()
            seen.add(piece.root)
            spec, made = other.spec, ITEM_MADE
        return self._shared(("", spec.id, *made), spec.over, made)

    def _written(self, expression: Expression, made: dict[str, Any]) -> Items:
        """Items in the inputs, held to the same rules as those at a map; what is wrong with them is told once."""
        value, lost = walk(self.inputs, expression.rest)
        if lost or value is UNKNOWN:
            return Items()
        if expression.text not in self._told:
            self._told.add(expression.text)
            place = "/".join((f"{ROOT}/inputs", *expression.rest))
            self.faults.extend((place + inner, reason) for inner, reason in items_of(value)[1])
        return self._shared((expression.text, *made), value, made)

    def _shared(self, key: tuple[str, ...], over: Any, made: dict[str, Any]) -> Items:
        if key not in self._lists:
            self._lists[key] = Items([{**item, **made} for item in items_of(over)[0].values()])
        return self._lists[key]

    def _report(self, pointer: str, reason: str) -> None:
        self.faults.append((pointer, reason))


def _alone(text: str) -> Expression | None:
    """The expression that a text is, if it is one and nothing more."""
    try:
        pieces = parse(text)
    except Malformed:
        return None
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Expression) else None


def _given(kind: Kind, rest: tuple[str, ...]) -> tuple[Any, str]:
    if kind in (Kind.GATE, Kind.CHECK):
        return UNKNOWN, f"a {kind} gives nothing; name it in `needs`, and here the node that it looks at"
    attributes = MAP_ATTRIBUTES if kind is Kind.MAP else MADE_ATTRIBUTES
    if not rest or rest[0] not in attributes:
        return UNKNOWN, f"say which of {', '.join(attributes)}"
    if rest[0] == "artifact":
        return walk({"artifact": UNKNOWN}, rest[1:])
    return ([], "") if len(rest) == 1 and rest[0] != "output" else (UNKNOWN, "")


def walk(value: Any, path: Sequence[str]) -> tuple[Any, str]:
    """(The value at the end of a path, what was not there or "")."""
    for name in path:
        if value is UNKNOWN or (isinstance(value, str) and "${" in value):
            return UNKNOWN, ""
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return UNKNOWN, f"there is no {name!r}; there is {there(value)}"
    return value, ""


def _texts(node: Declared) -> Iterator[tuple[str, str, bool]]:
    """Every text of a node that may hold expressions: where it stands, the text, whether `item` may be named."""
    for name in EXPRESSED:
        for pointer, text in texts_in(node.raw.get(name), f"{node.pointer}/{name}"):
            yield pointer, text, False
    inner = node.raw.get("node")
    if isinstance(inner, Mapping):
        for name in EXPRESSED:
            for pointer, text in texts_in(inner.get(name), f"{node.pointer}/node/{name}"):
                yield pointer, text, True

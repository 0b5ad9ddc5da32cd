"""A Run and what stands on desks as JSON documents and back: what a row keeps beside the columns that are searched.

The nodes are a list: JSON objects keep no order, and the order of the graph matters. Of a node only what is not as in a
new one is said: most of a large Run has not begun. The production stands in a column of its own, written once.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec

from libs.kernel.canonical import field_names, plain
from services.runs.domain.desks import DeadLetter, Review
from services.runs.domain.memos import Memo
from services.runs.domain.run import Node, Run

_NAMES = field_names(Node)
_VALUES = attrgetter(*_NAMES)
_NEW = _VALUES(Node("", ""))


def run_to_document(run: Run) -> dict[str, Any]:
    """JSON values only; amounts as decimal text, times in RFC 3339."""
    return {**_head(run), "nodes": [plain(_told(node)) for node in run.nodes.values()]}


def _head(run: Run) -> dict[str, Any]:
    document: dict[str, Any] = plain(replace(run, production=None, nodes={}))
    del document["production"]
    return document


def _told(node: Node) -> dict[str, Any]:
    values = zip(_NAMES, _VALUES(node), _NEW, strict=True)
    return {name: value for name, value, new in values if value is not new and value != new}


def run_from_document(document: Mapping[str, Any], production: Mapping[str, Any] | None = None) -> Run:
    """The inverse of `run_to_document`."""
    nodes = {item["id"]: msgspec.convert(item, Node) for item in document["nodes"]}
    run = msgspec.convert({**document, "nodes": {}}, Run)
    return replace(run, nodes=nodes, production=production)


def run_to_text(run: Run) -> str:
    """The document as JSON, of many nodes in a fraction of the time that it takes to reduce each of them first."""
    nodes = [_told(node) for node in run.nodes.values()]
    return msgspec.json.encode({**_head(run), "nodes": nodes}, enc_hook=plain).decode()


def run_from_text(document: str, production: str | None) -> Run:
    """The inverse of `run_to_text`."""
    made = msgspec.json.decode(production) if production is not None else None
    return run_from_document(msgspec.json.decode(document), made)


def review_to_document(review: Review) -> dict[str, Any]:
    """JSON values only."""
    document: dict[str, Any] = plain(review)
    return document


def review_from_document(document: Mapping[str, Any]) -> Review:
    """The inverse of `review_to_document`."""
    return msgspec.convert(document, Review)


def memo_to_document(memo: Memo) -> dict[str, Any]:
    """JSON values only."""
    document: dict[str, Any] = plain(memo)
    return document


def memo_from_document(document: Mapping[str, Any]) -> Memo:
    """The inverse of `memo_to_document`."""
    return msgspec.convert(document, Memo)


def letter_to_document(letter: DeadLetter) -> dict[str, Any]:
    """JSON values only."""
    document: dict[str, Any] = plain(letter)
    return document


def letter_from_document(document: Mapping[str, Any]) -> DeadLetter:
    """The inverse of `letter_to_document`."""
    return msgspec.convert(document, DeadLetter)

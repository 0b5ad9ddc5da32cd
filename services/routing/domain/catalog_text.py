"""Catalogue text to plain values: YAML, read safely and strictly.

Laws of this file:
- a key that stands twice is a fault, not a silent victory of the second;
- YAML 1.2's plain scalars: `16:9` and `2026-11-29` are texts, `yes` is a text; only true and false are flags;
- nothing is constructed but mappings, lists, texts, numbers, flags and null; an alias that leads to itself is refused.
"""

import re
from typing import Any

import yaml

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 32
MAX_VALUES = 500_000
"""Aliases may make a small text large; past this number of values it is refused."""


class CatalogTextError(ValueError):
    """Text that is no catalogue: the reason, with line and column where known."""


_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: the same texts, some eight times as fast."""


class _Loader(_Parser):  # type: ignore[misc]  # its base is chosen above
    """SafeLoader with the plain scalars of YAML 1.2 and without silent duplicates."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", "~nN"),
    ("tag:yaml.org,2002:merge", r"^(?:<<)$", "<"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), [*_first, ""] if "null" in _tag else list(_first))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise CatalogTextError(f"{_place(key_node.start_mark)}: a key must be a plain text")
        if key_node.value in seen:
            raise CatalogTextError(f"{_place(key_node.start_mark)}: the key {key_node.value!r} stands twice")
        seen.add(key_node.value)
    loader.flatten_mapping(node)
    return {
        _key(loader, key_node): loader.construct_object(value_node, deep=True) for key_node, value_node in node.value
    }


def _key(loader: _Loader, node: yaml.Node) -> str:
    """Keys are texts, also where they look like numbers: `fx: {USD: …}`, `inputs: {9: …}`."""
    return str(node.value)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(node.value)


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def load(text: str) -> Any:
    """The plain value of a catalogue text. Raises CatalogTextError."""
    if len(text) > MAX_CHARACTERS:
        raise CatalogTextError(f"the text has {len(text)} characters, {MAX_CHARACTERS} are accepted")
    if "\0" in text:
        raise CatalogTextError("the text holds a NUL character")
    try:
        value = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{_place(mark)}: " if mark else ""
        raise CatalogTextError(f"{place}{error.problem or error.context or 'this is no YAML'}") from error
    except yaml.YAMLError as error:
        raise CatalogTextError(f"this is no YAML: {error}") from error
    except (RecursionError, ValueError) as error:
        if isinstance(error, CatalogTextError):
            raise
        raise CatalogTextError("the text is nested too deeply or holds a number that cannot be read") from error
    _bounded(value)
    return value


def _bounded(value: Any) -> None:
    """Refuse endless and enormous values before anybody walks them."""
    pending: list[tuple[Any, int]] = [(value, 0)]
    count = 0
    while pending:
        item, depth = pending.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise CatalogTextError(f"values are nested more than {MAX_DEPTH} deep, or lead back to themselves")
        if count > MAX_VALUES:
            raise CatalogTextError(f"the text stands for more than {MAX_VALUES} values")
        if isinstance(item, dict):
            pending.extend((part, depth + 1) for part in item.values())
        elif isinstance(item, list):
            pending.extend((part, depth + 1) for part in item)

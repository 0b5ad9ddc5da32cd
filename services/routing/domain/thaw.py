"""Typed values back from canonical JSON: the inverse of `libs.kernel.canonical.plain` for frozen dataclasses.

`thaw(Catalog, json.loads(canonical_json(catalog)))` equals the catalogue. A field that the class does not know is
ignored and one that is not there takes its default, so records of other releases stay readable (CAT-2).
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_KNOWN: dict[type[Any], tuple[tuple[str, Any, bool], ...]] = {}
"""(name, type, required) of the fields of every class met so far: reading type hints is slow."""


def thaw(kind: type[T], value: Any) -> T:
    """`value` (JSON types) as an instance of `kind`. KeyError if a required field is missing."""
    result: T = _thaw(kind, value)
    return result


def _thaw(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _thaw(next(part for part in get_args(kind) if part is not type(None)), value)
    if origin is tuple:
        item = get_args(kind)[0]
        return tuple(_thaw(item, part) for part in value)
    if origin is not None and issubclass(origin, Mapping):
        item = get_args(kind)[1]
        return {key: _thaw(item, part) for key, part in value.items()}
    if isinstance(kind, type):
        return _scalar(kind, value)
    return value


def _scalar(kind: type[Any], value: Any) -> Any:
    if is_dataclass(kind):
        return _instance(kind, value)
    if issubclass(kind, Enum):
        return kind(value)
    if kind is Decimal:
        return Decimal(value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    if kind is float:
        return float(value)
    return value


def _instance(kind: type[Any], value: Mapping[str, Any]) -> Any:
    given = {}
    if kind not in _KNOWN:
        _KNOWN[kind] = _fields_of(kind)
    for name, hint, required in _KNOWN[kind]:
        if name in value:
            given[name] = _thaw(hint, value[name])
        elif required:
            raise KeyError(f"{kind.__name__}.{name}")
    return kind(**given)


def _fields_of(kind: type[Any]) -> tuple[tuple[str, Any, bool], ...]:
    hints = get_type_hints(kind)
    return tuple(
        (field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    )

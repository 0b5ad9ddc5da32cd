"""Typed values back from canonical JSON: the inverse of `libs.kernel.canonical.plain` for dataclasses and named tuples.

`thaw(Catalog, json.loads(canonical_json(catalog)))` equals the catalogue. A field that the class does not know is
ignored and one that is not there takes its default, so records of other releases stay readable (CAT-2).
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from libs.kernel.canonical import field_names

T = TypeVar("T")
Reader = Callable[[Any], Any]

_READERS: dict[Any, Reader] = {}
"""By type hint, as met: reading type hints is slow."""


def thaw(kind: type[T], value: Any) -> T:
    """`value` (JSON types) as an instance of `kind`. KeyError if a required field is missing."""
    result: T = _reader(kind)(value)
    return result


def _reader(hint: Any) -> Reader:
    found = _READERS.get(hint)
    if found is None:
        found = _READERS[hint] = _made(hint)
    return found


def _made(hint: Any) -> Reader:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        some = _reader(next(part for part in get_args(hint) if part is not type(None)))
        return lambda value: None if value is None else some(value)
    if origin is tuple:
        item = _reader(get_args(hint)[0])
        return lambda value: tuple(map(item, value))
    if origin is not None and issubclass(origin, Mapping):
        entry = _reader(get_args(hint)[1])
        return lambda value: {key: entry(part) for key, part in value.items()}
    return _scalar(hint) if isinstance(hint, type) else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _scalar(kind: type[Any]) -> Reader:
    if field_names(kind):
        return _instance(kind)
    if kind in (Decimal, float) or issubclass(kind, Enum):
        return kind
    return datetime.fromisoformat if kind is datetime else _as_it_is


def _instance(kind: type[Any]) -> Reader:
    parts = _fields_of(kind)

    def read(value: Mapping[str, Any]) -> Any:
        given = {}
        for name, reader, required in parts:
            if name in value:
                given[name] = reader(value[name])
            elif required:
                raise KeyError(f"{kind.__name__}.{name}")
        return kind(**given)

    return read


def _fields_of(kind: type[Any]) -> tuple[tuple[str, Reader, bool], ...]:
    """(name, reader, required) of every field."""
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        optional = {f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING}
    else:
        optional = set(kind._field_defaults)
    return tuple((name, _reader(hints[name]), name not in optional) for name in field_names(kind))

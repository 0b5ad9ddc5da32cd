"""One spelling for every JSON value, so that equal values have equal bytes and equal hashes.

Every decision that is kept and every message with a JSON object passes here: what is known of a type is worked out
once.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

Reduce = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Reduce `value` to JSON types: dataclasses and named tuples to objects, decimals to plain strings, times to
    RFC 3339 in UTC."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    reduce = _KNOWN.get(kind)
    if reduce is None:
        reduce = _KNOWN[kind] = _reducer(kind)
    return reduce(value)


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces; whole floats are written as integers."""
    return canonical_text(value).encode()


def canonical_text(value: Any) -> str:
    """The canonical JSON, not yet encoded."""
    return _ENCODER.encode(plain(value))


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal characters."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """Names of the fields of a dataclass or named tuple, in the order of their declaration; empty for other types."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else ()


def _reducer(kind: type[Any]) -> Reduce:
    """How values of that type are reduced."""
    if issubclass(kind, Enum):
        return lambda value: value.value
    names = field_names(kind)
    if names or is_dataclass(kind):
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    for known, reduce in _BY_BASE:
        if issubclass(kind, known):
            return reduce
    raise TypeError(f"no canonical JSON for {kind.__name__}")


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _sequence(value: Sequence[Any]) -> list[Any]:
    return [plain(item) for item in value]


def _set(value: set[Any] | frozenset[Any]) -> list[Any]:
    return sorted(plain(item) for item in value)


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): plain(item) for key, item in value.items()}


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _itself(value: Any) -> Any:
    return value


def _refused(value: Any) -> Any:
    raise TypeError(f"no canonical JSON for {type(value).__name__}")


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)
_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
_BY_BASE: tuple[tuple[type[Any], Reduce], ...] = (
    (bool, _itself),
    (int, _itself),
    (str, _itself),
    (float, _number),
    (Decimal, lambda value: format(value, "f")),
    (datetime, _moment),
    (Mapping, _mapping),
    (set, _set),
    (frozenset, _set),
    (bytes, _refused),
    (bytearray, _refused),
    (Sequence, _sequence),
)
"""The first base that fits decides."""
_KNOWN: dict[type[Any], Reduce] = {}
"""By exact type, as met."""

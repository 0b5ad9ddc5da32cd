"""Every foreign field is read, ignored on purpose, or noticed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

LIMIT = 20
NAME_LIMIT = 80


def unknown_fields(operation: str, document: Any, read: frozenset[str], ignored: frozenset[str]) -> tuple[str, ...]:
    """Dotted paths of fields that are neither read nor ignored, each once, at most 20, sorted.

    Lists are written `[]`. What stands under an ignored field, or under a read one that is named with a trailing `.*`,
    is not looked at. Names come from outside and are cut to 80 characters.
    """
    found = dict.fromkeys(_paths(operation, document, _known(read, ignored)))
    return tuple(sorted(path[:NAME_LIMIT] for path in found))[:LIMIT] if found else ()


@dataclass(frozen=True, slots=True)
class _Known:
    """`settled` are paths under which nothing is looked for; `inner` those that lead to a path which is read."""

    settled: frozenset[str]
    read: frozenset[str]
    inner: frozenset[str]


@lru_cache(maxsize=256)
def _known(read: frozenset[str], ignored: frozenset[str]) -> _Known:
    whole = {path.removesuffix(".*") for path in read if path.endswith(".*")}
    inner = {led for path in read for led in _leading(path)}
    return _Known(ignored | whole, read, frozenset(inner))


def _leading(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path
        yield path.removesuffix("[]")


def _paths(prefix: str, value: Any, known: _Known) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(f"{prefix}[]", item, known)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            path = f"{prefix}.{name}"
            if path in known.settled:
                continue
            if isinstance(inner, Mapping | list) and inner:
                if path in known.inner or path in known.read:
                    yield from _paths(path, inner, known)
                else:
                    yield path
            elif path not in known.read and path not in known.inner:
                yield path

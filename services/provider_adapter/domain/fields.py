"""Every foreign field is read, ignored on purpose, or noticed."""

from collections.abc import Iterator, Mapping
from typing import Any

LIMIT = 20
NAME_LIMIT = 80


def unknown_fields(operation: str, document: Any, read: frozenset[str], ignored: frozenset[str]) -> tuple[str, ...]:
    """Dotted paths of fields that are neither read nor ignored, each once, at most 20, sorted.

    Lists are written `[]`. What stands under an ignored field, or under a read one that is named with a trailing `.*`,
    is not looked at. Names come from outside and are cut to 80 characters.
    """
    found = dict.fromkeys(_paths(operation, document, read, ignored))
    return tuple(sorted(path[:NAME_LIMIT] for path in found))[:LIMIT]


def _paths(prefix: str, value: Any, read: frozenset[str], ignored: frozenset[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(f"{prefix}[]", item, read, ignored)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            path = f"{prefix}.{name}"
            if path in ignored or f"{path}.*" in read:
                continue
            if isinstance(inner, Mapping | list) and inner:
                if any(known.startswith(path) for known in read):
                    yield from _paths(path, inner, read, ignored)
                else:
                    yield path
            elif path not in read and not any(known.startswith(f"{path}.") for known in read):
                yield path

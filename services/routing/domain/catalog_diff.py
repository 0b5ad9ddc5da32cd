"""What differs between two declarations, in lines for a person."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from libs.kernel.canonical import canonical_json
from services.routing.domain.catalog_file import ObjectKind

NOTHING = "(nothing)"
MAX_TEXT = 120


@dataclass(frozen=True, slots=True)
class Change:
    """One object that differs: `created`, `changed` or `retired`, with `limits.concurrency: 5 -> 8` and so on."""

    kind: ObjectKind
    id: str
    change: str
    details: tuple[str, ...] = ()


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Lines `path: old -> new`, in the order of the paths."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    return tuple(
        f"{path}: {_shown(old, path)} -> {_shown(new, path)}"
        for path in sorted(old.keys() | new.keys())
        if canonical_json(old.get(path)) != canonical_json(new.get(path)) or (path in old) != (path in new)
    )


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value that holds no further one; lists of plain values are shown whole."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _shown(values: Mapping[str, Any], path: str) -> str:
    if path not in values:
        return NOTHING
    value = values[path]
    text = value if isinstance(value, str) and value else canonical_json(value).decode()
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"

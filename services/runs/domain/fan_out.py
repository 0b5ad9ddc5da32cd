"""What a map fans out over: a list of objects becomes items with ids (GATE-3)."""

from collections.abc import Mapping
from typing import Any

from services.runs.domain.reading.notation import NODE_ID

MOST_ITEMS = 2000


def items_of(over: Any) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str]]]:
    """(The items by id, in order and each with its `id`; what is wrong, as pointers into `over` with reasons).

    An item without an `id` is `i001`, `i002` … by its place in the list.
    """
    if not isinstance(over, (list, tuple)):
        return {}, [("", "must be a list of objects")]
    if len(over) > MOST_ITEMS:
        return {}, [("", f"must hold at most {MOST_ITEMS} items, not {len(over)}; make several productions of it")]
    items: dict[str, dict[str, Any]] = {}
    faults: list[tuple[str, str]] = []
    for index, item in enumerate(over):
        if not isinstance(item, Mapping):
            faults.append((f"/{index}", 'must be an object, for example {id: S01, prompt: "…"}'))
            continue
        given = item.get("id")
        name = f"i{index + 1:03}" if given is None else given
        if not isinstance(name, str) or not NODE_ID.fullmatch(name):
            faults.append((f"/{index}/id", "must be a text of 1 to 64 letters, digits, _ and -"))
        elif name in items:
            at = f"/{index}" if given is None else f"/{index}/id"
            faults.append((at, f"is {name!r} like an item before it; give each an `id` of its own"))
        else:
            items[name] = {**item, "id": name}
    return items, faults

"""How an input takes up what comes later: a steering input, a person's change. And by what a result is known."""

from collections.abc import Iterable, Mapping
from typing import Any

from libs.kernel.canonical import digest


def steered(given: Mapping[str, Any], path: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The input with one steering input merged in at `path` (`prompt`, `shots.0.prompt`): STEER-2.

    `data.value` replaces what stands there. `data.text` is appended: to a text after one space, or on a line of its own
    where the text has several; to a list as one more member; anything else it replaces. Missing objects on the way are
    made; where the way is barred by a value without such a field, and with neither of the two, nothing changes.
    """
    after: Any = given
    names = path.split(".")
    if "value" in data:
        after = _put(after, names, lambda _: data["value"])
    if isinstance(data.get("text"), str):
        after = _put(after, names, lambda before: _appended(before, data["text"]))
    return dict(after)


def changed(given: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The input with a person's change merged in: objects field by field, null takes a field away, all else replaces
    (RFC 7396)."""
    after = dict(given)
    for name, value in fields.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, Mapping):
            before = after.get(name)
            after[name] = changed(before if isinstance(before, Mapping) else {}, value)
        else:
            after[name] = value
    return after


def fewer_variants(given: Mapping[str, Any]) -> dict[str, Any]:
    """The input that asks for one of several: `n` of pictures, the only variants that a request can name (COST-10)."""
    count = given.get("n")
    several = isinstance(count, (int, float)) and not isinstance(count, bool) and count > 1
    return {**given, "n": 1} if several else dict(given)


def layered(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Two changes, one after the other, as one: applied with `changed` it does what both do."""
    both = dict(before)
    for name, value in later.items():
        known = both.get(name)
        both[name] = layered(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return both


def input_hash(
    model: str,
    given: Mapping[str, Any],
    *,
    degradation: str = "",
    billing_mode: str = "",
    artifacts: Iterable[str] = (),
) -> str:
    """What decides a result, as one SHA-256 (RUN-4): two nodes with equal hashes may share a result.

    `given` is the resolved input, in which files stand by digest; `artifacts` are digests used beside it, in order.
    Budgets, priorities and deadlines decide when and whether, not what, and do not count.
    """
    return digest(
        {
            "model": model,
            "input": given,
            "degradation": degradation,
            "billing_mode": billing_mode,
            "artifacts": list(artifacts),
        }
    )


def _put(value: Any, names: list[str], change: Any) -> Any:
    if not names:
        return change(value)
    name, rest = names[0], names[1:]
    if isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
        return [_put(item, rest, change) if index == int(name) else item for index, item in enumerate(value)]
    if value is None or isinstance(value, Mapping):
        fields = value or {}
        return {**fields, name: _put(fields.get(name), rest, change)}
    return value


def _appended(before: Any, text: str) -> Any:
    if isinstance(before, (list, tuple)):
        return [*before, text]
    if not isinstance(before, str) or not before:
        return text
    joint = "\n" if "\n" in before else " "
    return f"{before.rstrip()}{joint}{text}"

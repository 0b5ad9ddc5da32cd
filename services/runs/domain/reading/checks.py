"""The `checks` of a node: names, or `{name: argument}`, each brought to the one form that judging takes.

| check | argument as written | as kept |
|---|---|---|
| `decodes` | none | None |
| `min_size`, `max_size` | `1280x720` | the same |
| `duration` | `4s` or seconds, `{seconds, tolerance_s}`, `{min_s, max_s}` | one of the two objects |
| `hash` | a SHA-256 | the same |
| `similar_to` | a picture or several, or `{reference, threshold}` | `{reference, threshold}` |
| `text` | `{contains, model}` | the same |
| `streams` | a list of `video`, `audio`, `subtitle` | the same |

Where an expression stands, its value is judged when it is known.
"""

from collections.abc import Callable, Mapping
from typing import Any

from services.runs.domain.plan import Check
from services.runs.domain.reading.fields import Faults, Fields, kind_of, pointer_to
from services.runs.domain.reading.notation import DIGEST, duration_of, is_number, size_of

STREAMS = ("video", "audio", "subtitle")
TOLERANCE_S = 0.25
THRESHOLD = 0.85
Read = Callable[[Any, str, Faults], Any]


def read_checks(fields: Fields, name: str = "checks") -> tuple[Check, ...]:
    """The checks in that field; empty where there are none."""
    found = []
    for index, entry in enumerate(fields.list(name)):
        check = _check(entry, pointer_to(fields.at(name), index), fields.faults)
        if check is not None:
            found.append(check)
    return tuple(found)


def _check(entry: Any, pointer: str, faults: Faults) -> Check | None:
    if isinstance(entry, str):
        name, argument, place = entry, None, pointer
    elif isinstance(entry, Mapping) and len(entry) == 1:
        name, argument = next(iter(entry.items()))
        place = pointer_to(pointer, name)
    else:
        faults.append((pointer, "must be the name of a check, or an object with one name and its argument"))
        return None
    if name not in READERS:
        faults.append((place, f"is no check that is known; known are {', '.join(READERS)}"))
        return None
    return Check(name, READERS[name](argument, place, faults))


def _nothing(value: Any, pointer: str, faults: Faults) -> None:
    if value is not None:
        faults.append((pointer, "takes no argument; write the name alone"))


def _size(value: Any, pointer: str, faults: Faults) -> Any:
    if not _later(value) and size_of(value) is None:
        faults.append((pointer, "needs a size in pixels as WIDTHxHEIGHT, for example 1280x720"))
    return value


def _duration(value: Any, pointer: str, faults: Faults) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"seconds": _seconds(value, pointer, faults), "tolerance_s": TOLERANCE_S}
    fields = Fields(value, pointer, faults)
    if fields.has("seconds"):
        seconds = _seconds(fields.anything("seconds"), fields.at("seconds"), faults)
        read = {"seconds": seconds, "tolerance_s": _bound(fields, "tolerance_s", TOLERANCE_S)}
    else:
        read = {"min_s": _bound(fields, "min_s", 0.0), "max_s": _bound(fields, "max_s", None)}
        if not fields.has("min_s") and not fields.has("max_s"):
            faults.append((pointer, "needs `min_s`, `max_s` or both, or `seconds` with `tolerance_s`"))
        elif read["max_s"] is not None and read["min_s"] > read["max_s"]:
            fields.fault("max_s", "must not be below `min_s`")
    fields.close()
    return read


def _seconds(value: Any, pointer: str, faults: Faults) -> Any:
    if _later(value):
        return value
    duration = duration_of(value)
    if duration is None:
        faults.append((pointer, "needs a duration, for example 4 or 4s, or {min_s, max_s}"))
        return 0.0
    return duration.total_seconds()


def _bound(fields: Fields, name: str, default: float | None) -> Any:
    value = fields.anything(name)
    if value is None:
        return default
    if not is_number(value) or value < 0:
        fields.fault(name, "must be a number of seconds, at least 0")
        return default
    return float(value)


def _hash(value: Any, pointer: str, faults: Faults) -> Any:
    if not _later(value) and not (isinstance(value, str) and DIGEST.fullmatch(value)):
        faults.append((pointer, "needs a SHA-256 as 64 lower-case hexadecimal digits"))
    return value


def _similar(value: Any, pointer: str, faults: Faults) -> dict[str, Any]:
    threshold = THRESHOLD
    place = pointer
    if isinstance(value, Mapping) and "artifact" not in value:
        fields = Fields(value, pointer, faults)
        value, place = fields.anything("reference"), fields.at("reference")
        given = fields.anything("threshold")
        if given is not None and not (is_number(given) and 0 < given <= 1):
            fields.fault("threshold", "must be a number above 0 and at most 1 (1 = looks the same)")
        elif given is not None:
            threshold = float(given)
        fields.close()
    references = value if isinstance(value, (list, tuple)) and value else [value]
    if not all(_later(each) or _is_material(each) for each in references):
        faults.append(
            (place, 'needs a picture to compare with: "${node.artifact}", {artifact: SHA256} or a list of them')
        )
    return {"reference": value, "threshold": threshold}


def _is_material(value: Any) -> bool:
    digest = value.get("artifact") if isinstance(value, Mapping) else None
    return _later(digest) or (isinstance(digest, str) and DIGEST.fullmatch(digest) is not None)


def _text(value: Any, pointer: str, faults: Faults) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        faults.append((pointer, 'needs the words and a public model of kind ocr: {contains: "…", model: …}'))
        return {"contains": "", "model": ""}
    fields = Fields(value, pointer, faults)
    read = {"contains": fields.text("contains"), "model": fields.text("model", longest=200)}
    fields.close()
    return read


def _streams(value: Any, pointer: str, faults: Faults) -> list[str]:
    if not isinstance(value, (list, tuple)) or not value:
        faults.append((pointer, f"needs a list of {', '.join(STREAMS)}, not {kind_of(value)}"))
        return []
    for index, stream in enumerate(value):
        if stream not in STREAMS:
            faults.append((pointer_to(pointer, index), f"must be one of {', '.join(STREAMS)}"))
    return [stream for stream in value if stream in STREAMS]


def _later(value: Any) -> bool:
    """Whether only a Run can tell the value: an expression, which is checked with all others."""
    return isinstance(value, str) and "${" in value


READERS: Mapping[str, Read] = {
    "decodes": _nothing,
    "min_size": _size,
    "max_size": _size,
    "duration": _duration,
    "hash": _hash,
    "similar_to": _similar,
    "text": _text,
    "streams": _streams,
}

"""Finding the evidence in a reply: codes and messages wherever a provider puts them, innermost first.

Providers wrap one another: a message may hold JSON as text, an error may sit in a list, under `data`, under
`error.metadata.raw`, in a stream event. The innermost clue is nearest to the truth, so it is asked first.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

DEPTH_LIMIT = 8
CLUE_LIMIT = 64
TEXT_LIMIT = 2000
PARAM_LIMIT = 120
SAID_LIMIT = 8000  # characters of all messages together: hundreds of patterns are held against each of them


class Shape(StrEnum):
    """What kind of body it is."""

    EMPTY = "empty"
    JSON = "json"
    EVENTS = "events"
    HTML = "html"
    XML = "xml"
    TEXT = "text"
    BINARY = "binary"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Clue:
    """One thing said, and where (`body.error.code`)."""

    path: str
    text: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a body says. Clues are ordered innermost first. `state` is the state that a task is said to be in.

    `wait` is how long to wait, as a field of the body says it: `34.4s`, `250ms`, `7` (seconds). `param` is the field of
    the request that is said to be wrong, in the provider's spelling: `messages[0].content`.
    """

    shape: Shape
    document: Any = None
    codes: tuple[Clue, ...] = ()
    messages: tuple[Clue, ...] = ()
    state: str = ""
    detail_list: bool = False
    wait: str = ""
    param: str = ""

    @property
    def structured(self) -> bool:
        """Whether an application, not a proxy, speaks."""
        return self.shape in (Shape.JSON, Shape.EVENTS) and bool(self.codes or self.messages)


# Names under which codes and messages are found; compared in lower case without underscores.
_CODES = frozenset(
    "code errorcode errcode failurecode failcode statuscode type errortype reason name finishreason stopreason"
    " blockreason status state taskstatus rejectionreason quotaid".split()
)
_STATES = frozenset({"status", "state", "taskstatus"})
_MESSAGES = frozenset(
    "message msg detail details error errmsg errormessage errormsg statusmsg failreason failure failurereason"
    " rawmessage failmsg taskstatusmsg errors title reason raw description".split()
)
# What users or models wrote, or what is about the request and not about its failure.
_SKIPPED = frozenset(
    "prompt input inputs text output outputs logs url urls request revisedprompt docurl id requestid traceid ctx"
    " metrics usage safetyratings embedding audio b64json image images video model object version query".split()
)
# The field of the request that is wrong: by name, or as a path in parts.
_PARAMS = frozenset({"param", "parameter", "paramname", "loc"})
_WAITS = frozenset({"retryafter", "retryafterseconds", "retryaftersec", "retryafterms", "retrydelay", "retryin"})
# Flags that tell something by one of their values: the job is over, or its result was filtered.
_FLAGS = {"done": True, "respectmoderation": False}
_FLAGGED = {"done": "ended", "respectmoderation": "code"}
_WRAPPERS = frozenset({"output", "request", "video"})  # an object of that name may wrap the task itself
_FINE = frozenset(
    {"", "0", "200", "ok", "success", "succeed", "succeeded", "completed", "stop", "none", "null", "error"}
)
_EMBEDDED = re.compile(r"[\[{]\s*[\"{]")


def read(body: bytes, media_type: str = "") -> Reading:
    """Read a body. Never raises: what cannot be read has a shape that says so."""
    if not body.strip():
        return Reading(Shape.EMPTY)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Reading(Shape.BINARY)
    stripped = text.lstrip()
    if stripped[:1] in ("{", "[", '"'):
        try:
            return of_document(json.loads(stripped))
        except (ValueError, RecursionError):
            lines = _json_lines(stripped)
            if lines:
                return _last_of(lines)
            if "json" in media_type or stripped[:1] in ("{", "["):
                return Reading(Shape.CUT)
    if re.match(r"(?:event|data|id|retry)\s*:|:", stripped):
        return _events(stripped)
    head = stripped[:512].lower()
    if head.startswith("<?xml") or (head.startswith("<") and "<error>" in head):
        return Reading(Shape.XML, messages=tuple(_xml_clues(text)))
    if head.startswith("<") or "<html" in head:
        return Reading(Shape.HTML, messages=(Clue("body", _plain(text)),))
    return Reading(Shape.TEXT, messages=(Clue("body", text[:TEXT_LIMIT]),))


def of_document(document: Any, root: str = "body") -> Reading:
    """Read a JSON value that is already parsed."""
    if isinstance(document, str):
        inner = embedded(document)
        if inner is None:
            return Reading(Shape.JSON, document, messages=(Clue(root, document[:TEXT_LIMIT]),))
        document, root = inner, f"{root}!"
    clues = list(_walk(root, document, 0))[:CLUE_LIMIT]
    codes = sorted((clue for kind, clue in clues if kind == "code"), key=lambda clue: -clue.depth)
    # "status" holds now a code, now the state of a task: it is asked after the codes proper.
    codes += sorted((clue for kind, clue in clues if kind == "state" and _telling(clue.text)), key=lambda c: -c.depth)
    messages = sorted((clue for kind, clue in clues if kind == "message"), key=lambda clue: -clue.depth)
    messages = _bounded(messages)
    state = next((clue.text for kind, clue in clues if kind in ("state", "ended")), "")
    detail = document.get("detail") if isinstance(document, Mapping) else None
    listed = isinstance(detail, list) and any(isinstance(item, Mapping) and "type" in item for item in detail)
    wait = next((clue.text for kind, clue in clues if kind == "wait"), "")
    param = next((clue.text for kind, clue in clues if kind == "param"), "")
    return Reading(Shape.JSON, document, tuple(codes), tuple(messages), state, listed, wait, param)


def _bounded(messages: list[Clue]) -> list[Clue]:
    """Each text once, the first ones up to the limit."""
    kept: dict[str, Clue] = {}
    left = SAID_LIMIT
    for clue in messages:
        if clue.text not in kept and len(clue.text) <= left:
            kept[clue.text] = clue
            left -= len(clue.text)
    return list(kept.values())


def _walk(path: str, value: Any, depth: int) -> Iterator[tuple[str, Clue]]:
    if depth > DEPTH_LIMIT:
        return
    if isinstance(value, list):
        for index, item in enumerate(value[:20]):
            yield from _walk(f"{path}[{index}]", item, depth)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _field(f"{path}.{name}", str(name), inner, depth)


def _field(path: str, name: str, value: Any, depth: int) -> Iterator[tuple[str, Clue]]:
    flat = name.replace("_", "").replace("-", "").lower()
    if flat in _PARAMS and isinstance(value, str | list):
        yield from _param(path, value, depth)
        return
    if value is None or (flat in _SKIPPED and not (flat in _WRAPPERS and isinstance(value, Mapping))):
        return
    if flat.startswith("raimediafiltered") and value:
        yield "code", Clue(path, "content_filtered", depth + 1)
        return
    if flat == "refusal" and isinstance(value, str) and value:
        yield "code", Clue(path, "refusal", depth + 1)
        return
    if flat == "blockreason" and isinstance(value, str) and _telling(value):  # whatever it is, the prompt was blocked
        yield from (("code", Clue(path, value, depth)), ("code", Clue(path, "content_filtered", depth)))
        return
    if flat in _WAITS and isinstance(value, str | int | float) and not isinstance(value, bool):
        yield "wait", Clue(path, f"{value}ms" if flat.endswith("ms") else str(value)[:40], depth)
        return
    if value is _FLAGS.get(flat):
        yield _FLAGGED[flat], Clue(path, "content_filtered" if _FLAGGED[flat] == "code" else flat, depth + 1)
        return
    if isinstance(value, Mapping):
        yield from _walk(path, value, depth + 1)
    elif isinstance(value, list):
        if flat in _MESSAGES or flat.endswith("reasons"):
            yield from (("message", Clue(path, item[:TEXT_LIMIT], depth)) for item in value if isinstance(item, str))
        yield from _walk(path, value, depth + 1)
    elif isinstance(value, str):
        yield from _text(path, flat, value, depth)
    elif flat in _CODES and isinstance(value, int | float) and not isinstance(value, bool):
        yield "code", Clue(path, str(value), depth)


def _param(path: str, value: str | list[Any], depth: int) -> Iterator[tuple[str, Clue]]:
    if not isinstance(value, str):
        value = ".".join(str(part) for part in value if isinstance(part, str | int) and part != "body")
    if value:
        yield "param", Clue(path, value[:PARAM_LIMIT], depth)


def _text(path: str, flat: str, value: str, depth: int) -> Iterator[tuple[str, Clue]]:
    if flat in _STATES:
        yield "state", Clue(path, value, depth)
    elif flat in _CODES and _telling(value):
        yield "code", Clue(path, value, depth)
    whole = value.lstrip().startswith(("{", "["))  # JSON as text is read under any name
    if (flat in _MESSAGES and value.strip()) or whole:
        inner = embedded(value)
        if inner is not None:
            yield from _walk(f"{path}!", inner, depth + 2)
        if flat in _MESSAGES and (inner is None or not whole):
            yield "message", Clue(path, value[:TEXT_LIMIT], depth)


def _telling(value: str) -> bool:
    """Whether a text may be a code that tells of a failure."""
    return len(value) <= 120 and value.strip().lower() not in _FINE


def embedded(text: str) -> Any:
    """The JSON object or list that a text is, or holds after some words; None when there is none."""
    match = _EMBEDDED.search(text)
    if match is None:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[match.start() :])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping | list) else None


def _json_lines(text: str) -> list[Any]:
    """The values of a stream of JSON lines; empty when it is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] if len(lines) > 1 else []
    except (ValueError, RecursionError):
        return []


def _events(text: str) -> Reading:
    return _last_of(event_documents(text))


def _last_of(values: Iterable[Any]) -> Reading:
    """A stream of events: the last one that tells of a failure, else the last one."""
    readings = [of_document(value) for value in values]
    failed = [reading for reading in readings if reading.codes or reading.messages]
    chosen = (failed or readings or [Reading(Shape.EVENTS)])[-1]
    return replace(chosen, shape=Shape.EVENTS, detail_list=False)


def event_documents(text: str) -> Iterator[Any]:
    """The JSON values of the `data:` lines."""
    for block in re.split(r"\r?\n\r?\n", text):
        lines = [line[5:].strip() for line in block.splitlines() if line.startswith("data:")]
        try:
            yield json.loads("\n".join(lines))
        except ValueError:
            continue


def _xml_clues(text: str) -> Iterator[Clue]:
    for name in ("Code", "Message"):
        match = re.search(rf"<{name}>([^<]*)</{name}>", text)
        if match:
            yield Clue(f"body.{name}", match.group(1)[:TEXT_LIMIT])


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).strip()[:TEXT_LIMIT]

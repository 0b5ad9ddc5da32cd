"""What an answer becomes when it was asked for as a job: its words as files, and what is short of them beside.

| kind | files | output |
|---|---|---|
| chat | each choice's words; its message as JSON without any | `text`, `finish_reason`, `json` if it was asked for |
| embedding | the vectors as they came, as JSON | `count`, `dimensions` |
| ocr | the words, if there are any; the whole reading with its blocks, as JSON | `text` |

Laws of this file:
- a file holds what was said, byte for byte; the output is kept with the history of a Run, so it is short and such that
  every store can keep it (no NUL, no bottomless nesting);
- it was paid for, so nothing here fails: what has another shape than expected is left out of the output.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from services.provider_adapter.domain.calls import Answered
from services.provider_adapter.domain.inputs import encoded
from services.provider_adapter.domain.outcomes import WORDS, Made, Media
from services.provider_adapter.domain.outputs import readable

MOST_CHARACTERS = 100_000
"""Of a text in the output; a longer one is in its file alone."""
DEEPEST = 24
TEXT, JSON = "text/plain", "application/json"
BYTES_PER_NUMBER = 4
Found = tuple[tuple[Media, ...], dict[str, Any]]


def made_of(kind: str, answered: Answered, given: Mapping[str, Any]) -> Made:
    """The result of a job of a kind that is answered; `given` is its input."""
    report = answered.report
    media, output = _READERS[kind](readable(answered.output), given)
    if report.finish_reason:
        output["finish_reason"] = report.finish_reason
    usage = {name: value for name, value in msgspec.structs.asdict(report.usage).items() if value is not None}
    return Made(media, output, usage, report.reported_cost)


def _chat(answer: bytes, given: Mapping[str, Any]) -> Found:
    choices = json.loads(answer).get("choices") or ()
    messages = [choice.get("message") for choice in choices if isinstance(choice, Mapping)]
    texts = [_text(message.get("content")) if isinstance(message, Mapping) else "" for message in messages]
    media = tuple(
        _words(text) if text else _json(encoded(message)) for text, message in zip(texts, messages, strict=True)
    )
    output = _told(texts[0]) if texts and texts[0] else {}
    if output and _wants_json(given) and (value := _parsed(texts[0])) is not None:
        output["json"] = value
    return media, output


def _text(content: Any) -> str:
    """A content of parts says what its texts say."""
    if isinstance(content, (list, tuple)):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _wants_json(given: Mapping[str, Any]) -> bool:
    wanted = given.get("response_format")
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_object", "json_schema")


def _parsed(text: str) -> Any:
    """The JSON that a text is; None for what is none, or could not be kept."""
    try:
        value = json.loads(text) if len(text) <= MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        return None
    return _keepable(value) if _depth(value) <= DEEPEST else None


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for outer in level for inner in _members(outer)]
        depth += 1
    return depth


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _keepable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {name.replace("\0", "\ufffd"): _keepable(inner) for name, inner in value.items()}
    return [_keepable(inner) for inner in value] if isinstance(value, list) else value


class _Vector(msgspec.Struct):
    embedding: msgspec.Raw


class _Vectors(msgspec.Struct):
    data: list[_Vector]


def _embedding(answer: bytes, given: Mapping[str, Any]) -> Found:
    try:
        vectors = msgspec.json.decode(answer, type=_Vectors).data
        output = {"count": len(vectors)}
        if vectors and (numbers := _numbers(msgspec.json.decode(vectors[0].embedding))):
            output["dimensions"] = numbers
    except msgspec.MsgspecError:
        output = {}
    return (_json(answer),), output


def _numbers(vector: Any) -> int:
    """The length of a vector, a list or base64 of floats; 0 = not known."""
    if isinstance(vector, list):
        return len(vector)
    try:
        return len(base64.b64decode(str(vector), validate=True)) // BYTES_PER_NUMBER
    except (binascii.Error, ValueError):
        return 0


def _ocr(answer: bytes, given: Mapping[str, Any]) -> Found:
    text = _text(json.loads(answer).get("text"))
    words = (_words(text),) if text.strip() else ()
    return (*words, _json(answer)), _told(text)


def _told(text: str) -> dict[str, Any]:
    return {"text": text.replace("\0", "\ufffd")} if len(text) <= MOST_CHARACTERS else {}


def _words(text: str) -> Media:
    return Media(WORDS, data=text.encode("utf-8", "replace"), media_type=TEXT)


def _json(text: bytes) -> Media:
    return Media(WORDS, data=text, media_type=JSON)


_READERS: Mapping[str, Callable[[bytes, Mapping[str, Any]], Found]] = {
    "chat": _chat,
    "embedding": _embedding,
    "ocr": _ocr,
}

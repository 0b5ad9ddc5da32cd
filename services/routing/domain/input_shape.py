"""The shape of a request's input by kind of work, as the public contract names it.

A kind is a table: field -> check. A field that the table does not name is refused, so that a misspelt one is never
silently ignored. Pointers are JSON pointers into the request (`/input/reference_images/0/url`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from services.routing.domain.catalog import Kind
from services.routing.domain.film_shape import FILM_FIELDS, film_complaints, subtitles
from services.routing.domain.request import Request
from services.routing.domain.request_facts import DEFAULT_BILLING_MODES, REFERENCE_LISTS

Complaint = tuple[str, str]
"""(JSON pointer, reason)"""
Check = Callable[[str, Any], Iterator[Complaint]]

MAX_URL = 8192
SHA256_HEX = frozenset("0123456789abcdef")
BILLING_MODES = frozenset({*DEFAULT_BILLING_MODES.values(), "per_request"})
DEGRADATIONS = frozenset({"strict", "best_effort"})
PRIORITIES = frozenset({"high", "normal", "low"})
OCR_TASKS = ("recognize_text", "parse_layout")
SOUND_FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
"""Those of OpenAI's interface; which of them there are is each Supply's `formats`."""
SLOWEST, FASTEST = 0.25, 4.0


def complaints(kind: Kind, given: Mapping[str, Any]) -> list[Complaint]:
    """Everything that is wrong with an input; none = the shape is right."""
    found = [] if _is_keepable(given) else list(_unkeepable("/input", given))
    table = FIELDS[kind]
    # The first unknown name brings the list of the known ones; every further one would only repeat it.
    known = f"; its fields are {', '.join(table)}"
    for name, value in given.items():
        check = table.get(name)
        if check is None:
            found.append((f"/input/{_escaped(name)}", f"is not a field of {kind} input{known}"))
            known = ""
        elif value is not None:
            found.extend(check(f"/input/{name}", value))
    return found + list(_missing(kind, given))


def without(given: Mapping[str, Any], wrong: Iterable[Complaint], kind: Kind) -> dict[str, Any]:
    """The fields of an input that nobody complained of."""
    refused = {pointer.split("/")[2] for pointer, _ in wrong if pointer.count("/") > 1}
    return {name: value for name, value in given.items() if name in FIELDS[kind] and name not in refused}


def option_complaints(request: Request) -> list[Complaint]:
    """What is wrong with the options beside the input."""
    named = (
        ("degradation", request.degradation, DEGRADATIONS),
        ("billing_mode", request.billing_mode, BILLING_MODES),
        ("priority", request.priority, PRIORITIES),
    )
    return [
        (f"/options/{name}", f"must be one of {', '.join(sorted(known))}")
        for name, value, known in named
        if value and value not in known
    ]


def _missing(kind: Kind, given: Mapping[str, Any]) -> Iterator[Complaint]:
    if kind is Kind.VIDEO:
        yield from film_complaints(given)
        # A frame or a reference may speak for itself; with nothing at all there is nothing to make.
        if not any(given.get(name) for name in ("prompt", "first_frame", "last_frame", *REFERENCE_LISTS, *FILM_FIELDS)):
            yield "/input/prompt", "is required where there is no frame, no reference and no clips"
        return
    for name in REQUIRED[kind]:
        if (said := given.get(name)) in (None, "", []):
            yield f"/input/{name}", "is required" if said is None else "must not be empty"


def _text(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, str):
        yield pointer, "must be a text"


def _flag(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, bool):
        yield pointer, "must be true or false"


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(pointer: str, value: Any) -> Iterator[Complaint]:
    if not _is_number(value) or not 0 < value < 86_400:
        yield pointer, "must be a number of seconds above 0"


def _number(pointer: str, value: Any) -> Iterator[Complaint]:
    if not _is_number(value):
        yield pointer, "must be a number"


def _count(pointer: str, value: Any) -> Iterator[Complaint]:
    if not _is_number(value) or value != int(value) or value < 1:
        yield pointer, "must be a whole number above 0"


def _whole(pointer: str, value: Any) -> Iterator[Complaint]:
    if not _is_number(value) or value != int(value):
        yield pointer, "must be a whole number"


def _size(pointer: str, value: Any) -> Iterator[Complaint]:
    sides = str(value).lower().split("x")
    named = isinstance(value, str) and value.lower() in ("auto", "1k", "2k", "4k")
    if not named and not (
        isinstance(value, str) and len(sides) == 2 and all(side.isascii() and side.isdigit() for side in sides)
    ):
        yield pointer, "must be WIDTHxHEIGHT in pixels, for example 1280x720"


def _task(pointer: str, value: Any) -> Iterator[Complaint]:
    if value not in OCR_TASKS:
        yield pointer, f"must be one of {', '.join(OCR_TASKS)}"


def _format(pointer: str, value: Any) -> Iterator[Complaint]:
    if value not in SOUND_FORMATS:
        yield pointer, f"must be one of {', '.join(SOUND_FORMATS)}"


def _speed(pointer: str, value: Any) -> Iterator[Complaint]:
    if not _is_number(value) or not SLOWEST <= value <= FASTEST:
        yield pointer, f"must be a number between {SLOWEST:g} and {FASTEST:g}"


def _mapping(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, Mapping):
        yield pointer, "must be an object"


def _items(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, (list, tuple)):
        yield pointer, "must be a list"


def _anything(pointer: str, value: Any) -> Iterator[Complaint]:
    yield from ()


def _material(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, Mapping):
        yield pointer, 'must be a material: {"url"}, {"artifact"} or {"base64"}'
        return
    for name in value:
        if name not in ("url", "artifact", "media_type"):
            reason = "must have become an artifact before it comes here" if name == "base64" else "is not a field"
            yield f"{pointer}/{_escaped(name)}", reason
    url, artifact = value.get("url"), value.get("artifact")
    if (url is None) == (artifact is None):
        yield pointer, "must name either url or artifact"
    elif url is not None:
        yield from _url(f"{pointer}/url", url)
    elif not isinstance(artifact, str) or len(artifact) != 64 or not SHA256_HEX.issuperset(artifact):
        yield f"{pointer}/artifact", "must be a SHA-256 of 64 hexadecimal digits"


def _url(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        yield pointer, "must be an http or https address"
    elif len(value) > MAX_URL:
        yield pointer, f"must have at most {MAX_URL} characters"


def _materials(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, (list, tuple)):
        yield pointer, "must be a list of materials"
        return
    for index, item in enumerate(value):
        yield from _material(f"{pointer}/{index}", item)


def _voices(pointer: str, value: Any) -> Iterator[Complaint]:
    """Materials in the order of the clips; null where a clip has none."""
    if not isinstance(value, (list, tuple)):
        yield pointer, "must be a list of materials, null where a clip has none"
        return
    for index, item in enumerate(value):
        if item is not None:
            yield from _material(f"{pointer}/{index}", item)


def _messages(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, (list, tuple)):
        yield pointer, "must be a list of messages"
        return
    for index, message in enumerate(value):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            yield f"{pointer}/{index}", "must be a message with a role"
            continue
        content, calls = message.get("content"), message.get("tool_calls")
        if not (content is None or isinstance(content, (str, list, tuple))):
            yield f"{pointer}/{index}/content", "must be a text or a list of parts"
        if not (calls is None or isinstance(calls, (list, tuple))):
            yield f"{pointer}/{index}/tool_calls", "must be a list of calls"


def _texts(pointer: str, value: Any) -> Iterator[Complaint]:
    if not isinstance(value, (str, list, tuple)):
        yield pointer, "must be a text or a list of texts"
    elif not isinstance(value, str) and not (_are_tokens(value) or all(isinstance(item, str) for item in value)):
        for index, item in enumerate(value):
            if not isinstance(item, str) and not (isinstance(item, (list, tuple)) and _are_tokens(item)):
                yield f"{pointer}/{index}", "must be a text, or a list of token numbers"
                return


def _are_tokens(value: Iterable[Any]) -> bool:
    return all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value)


def _is_keepable(value: Any) -> bool:
    """Whether `_unkeepable` would find nothing: asked first, for nearly every input."""
    kind = type(value)
    if kind is str:
        return "\0" not in value
    if kind is dict:
        return all(type(name) is str and "\0" not in name and _is_keepable(item) for name, item in value.items())
    if kind is list:
        return all(map(_is_keepable, value))
    return value is None or kind is int or kind is bool or (kind is float and isfinite(value))


def _unkeepable(pointer: str, value: Any) -> Iterator[Complaint]:
    """EDG-3: NUL characters, names included, and what is no number are refused wherever they are."""
    if isinstance(value, str):
        if "\0" in value:
            yield pointer, "holds a NUL character"
    elif isinstance(value, float):
        if not isfinite(value):
            yield pointer, "must be a finite number"
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if "\0" in str(name):
                yield pointer, "has a field whose name holds a NUL character"
            yield from _unkeepable(f"{pointer}/{_escaped(name)}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _unkeepable(f"{pointer}/{index}", item)


def _escaped(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1").replace("\0", "")


FIELDS: Mapping[Kind, Mapping[str, Check]] = {
    Kind.VIDEO: {
        "prompt": _text,
        "reference_images": _materials,
        "reference_videos": _materials,
        "reference_audios": _materials,
        "first_frame": _material,
        "last_frame": _material,
        "clips": _materials,
        "narration": _voices,
        "subtitles": subtitles,
        "duration_s": _seconds,
        "resolution": _text,
        "ratio": _text,
        "audio": _flag,
        "seed": _whole,
        "real_person": _flag,
    },
    Kind.IMAGE: {"prompt": _text, "reference_images": _materials, "size": _size, "n": _count, "seed": _whole},
    Kind.CHAT: {
        "messages": _messages,
        "audio": _mapping,
        "frequency_penalty": _number,
        "function_call": _anything,
        "functions": _items,
        "logit_bias": _mapping,
        "logprobs": _flag,
        "max_completion_tokens": _count,
        "max_tokens": _count,
        "metadata": _mapping,
        "modalities": _items,
        "n": _count,
        "parallel_tool_calls": _flag,
        "prediction": _mapping,
        "presence_penalty": _number,
        "reasoning_effort": _text,
        "response_format": _mapping,
        "seed": _whole,
        "service_tier": _text,
        "stop": _anything,
        "store": _flag,
        "stream": _flag,
        "stream_options": _mapping,
        "temperature": _number,
        "tool_choice": _anything,
        "tools": _items,
        "top_logprobs": _whole,
        "top_p": _number,
        "user": _text,
        "verbosity": _text,
    },
    Kind.EMBEDDING: {"input": _texts, "dimensions": _count, "encoding_format": _text, "user": _text},
    Kind.OCR: {"image": _material, "task": _task},
    Kind.SPEECH: {"text": _text, "voice": _text, "format": _format, "speed": _speed},
}
REQUIRED: Mapping[Kind, tuple[str, ...]] = {
    Kind.IMAGE: ("prompt",),
    Kind.CHAT: ("messages",),
    Kind.EMBEDDING: ("input",),
    Kind.OCR: ("image",),
    Kind.SPEECH: ("text",),
}

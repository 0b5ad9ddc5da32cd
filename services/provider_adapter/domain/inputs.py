"""An input that came as JSON text: taken apart at its top level only, and deeper only where somebody looks.

A long conversation passes through this context as the bytes that it came in.
"""

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec

from libs.faults.fault import Fault

SHORT_BYTES = 64
SCHEME_WITHIN = 32
"""Characters within which a URL has told its scheme; base64 has no colon."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_NOTHING = object()
_HALF = re.compile("[\ud800-\udfff]")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_value = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class JsonInput(Mapping[str, Any]):
    """A JSON object as a mapping. `raw` holds the text of each field; a field is read when it is first asked for."""

    __slots__ = ("_read", "raw")

    def __init__(self, text: bytes) -> None:
        """Raises Fault `validation_failed` for what is no JSON object."""
        self._read: dict[str, Any] = {}
        try:
            self.raw: Mapping[str, msgspec.Raw] = _fields.decode(text)
        except UNREADABLE:
            whole = loaded(text)
            if not isinstance(whole, dict):
                raise Fault.invalid(("/input", "must be a JSON object in UTF-8")) from None
            self.raw = {name: msgspec.Raw(json.dumps(value).encode()) for name, value in whole.items()}
            self._read = whole

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            self._read[name] = decoded(self.raw[name], f"/input/{name}")
        return self._read[name]

    def get(self, name: str, default: Any = None) -> Any:
        """See Mapping.get, without an exception for what is absent, as most fields are."""
        return self[name] if name in self.raw else default

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __contains__(self, name: object) -> bool:
        return name in self.raw

    def __repr__(self) -> str:
        return f"JsonInput({', '.join(self.raw)})"


def decoded(text: bytes, pointer: str) -> Any:
    """JSON text as a value. Raises Fault that names the field."""
    value = loaded(text, _NOTHING)
    if value is _NOTHING:
        raise Fault.invalid((pointer, "must be JSON in UTF-8"))
    return value


def loaded(text: bytes | msgspec.Raw, otherwise: Any = None) -> Any:
    """JSON as a value; `otherwise` for what is none. Half an emoji, which models do say, is no reason to lose one."""
    try:
        return _value.decode(text)
    except UNREADABLE:
        pass
    try:
        return json.loads(bytes(text))
    except (ValueError, RecursionError):
        return otherwise


def holds(given: Mapping[str, Any], name: str) -> bool:
    """Whether the field is there and neither null nor empty; a long one is not taken apart to see it."""
    if isinstance(given, JsonInput) and name in given and len(bytes(given.raw[name])) > SHORT_BYTES:
        return True
    return bool(given.get(name))


def urls_passed_on(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(pointer, URL) of everything in a chat that the provider is to fetch by itself: pictures, clips (`…_url`) and
    documents (`file_data`). `data:` URLs are content, and so is what stands in `file_data` and is no URL."""
    if not isinstance(given, JsonInput):
        messages = given.get("messages")
    elif "messages" in given and any(word in bytes(given.raw["messages"]) for word in _MAY_PASS_ON):
        messages = given["messages"]  # taken apart only where there may be one; escapes may spell the word too
    else:
        return
    yield from _urls(messages, "/input/messages")


_MAY_PASS_ON = (b"_url", b"file_data", b"\\u")


def _urls(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        children: Iterator[tuple[Any, Any]] = iter(value.items())
    elif isinstance(value, list | tuple):
        children = iter(enumerate(value))
    else:
        return
    for name, item in children:
        where = f"{pointer}/{name}"
        if name == "file_data" and isinstance(item, str):
            if ":" in item[:SCHEME_WITHIN] and not item.startswith("data:"):
                yield where, item
        elif isinstance(name, str) and name.endswith("_url"):
            url = item.get("url") if isinstance(item, Mapping) else item
            if isinstance(url, str) and not url.startswith("data:"):
                yield (f"{where}/url" if isinstance(item, Mapping) else where), url
        yield from _urls(item, where)


def artifacts_shown(value: Any) -> Iterator[str]:
    """The digests of what a chat shows of ours: `{"artifact"}` where others have `{"url"}` (`image_url` …)."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if _shows(name, item):
                yield item["artifact"]
            else:
                yield from artifacts_shown(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from artifacts_shown(item)


def with_urls(value: Any, urls: Mapping[str, str]) -> Any:
    """The same with the URL of each in its place."""
    if isinstance(value, Mapping):
        return {
            name: {"url": urls[item["artifact"]], **{key: rest for key, rest in item.items() if key != "artifact"}}
            if _shows(name, item)
            else with_urls(item, urls)
            for name, item in value.items()
        }
    return [with_urls(item, urls) for item in value] if isinstance(value, list | tuple) else value


def _shows(name: str, item: Any) -> bool:
    return name.endswith("_url") and isinstance(item, Mapping) and isinstance(item.get("artifact"), str)


def raw_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an input for a body that passes them on: as text where they came as text."""
    return dict(given.raw) if isinstance(given, JsonInput) else dict(given)


def encoded(body: Any) -> bytes:
    """A request's or an output's JSON, without spaces, and without half characters, which UTF-8 does not have."""
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(mended(body))


def mended(value: Any) -> Any:
    """The value as every reader of JSON takes it: half an emoji as U+FFFD, a number that is none as null."""
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {mended(name): mended(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mended(item) for item in value]
    return value

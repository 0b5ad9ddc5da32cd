"""Replies of providers as people keep them: a labelled sample, many of them a line each, or what `curl -i` printed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.provider_adapter.adapters.registry import adapter_of
from services.provider_adapter.domain.exchange import Reply

FIELDS = frozenset({"http_status", "headers", "body", "transport_error"})
"""By these a JSON object is known as a sample, and not as the body of a reply."""


class Unreadable(ValueError):
    """The text is no sample; the words say what is, and where it broke."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a sample may leave open."""

    adapter: str = ""
    api: str = ""
    phase: str = ""
    status: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply to be judged. `expected` is its label, None where it has none."""

    name: str
    adapter: str
    api: str
    phase: str
    reply: Reply
    expected: Mapping[str, Any] | None = None
    doubtful: bool = False


def read_samples(text: str, asked: Asked) -> list[Sample]:
    """Every sample of a text, in order. Raises Unreadable."""
    if asked.status:
        return [_bare(Reply(asked.status, {}, text.encode()), asked)]
    stripped = text.lstrip("\ufeff").lstrip()
    if stripped.startswith("HTTP/"):
        return [_bare(_raw(stripped), asked)]
    if not stripped:
        raise Unreadable("there is nothing in it")
    return [_sample(item, place, asked) for place, item in _items(stripped)]


def _items(text: str) -> list[tuple[str, Any]]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [_line(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    listed = whole if isinstance(whole, list) else [whole]
    return [(f"sample {number}", item) for number, item in enumerate(listed, 1)]


def _line(number: int, line: str) -> tuple[str, Any]:
    try:
        return f"line {number}", json.loads(line)
    except ValueError as error:
        raise Unreadable(f"line {number} is no JSON, and the file no raw HTTP reply: {error}") from None


def _sample(item: Any, place: str, asked: Asked) -> Sample:
    if not isinstance(item, Mapping) or not FIELDS & item.keys():
        raise Unreadable(f"{place} has none of {', '.join(sorted(FIELDS))}; for a bare body give its --status")
    headers, status = item.get("headers") or {}, item.get("http_status") or 0
    if not isinstance(headers, Mapping) or not isinstance(status, int):
        raise Unreadable(f"{place}: headers are an object and http_status is a whole number")
    body = item.get("body")
    raw = b"" if body is None else (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()
    told = {str(name).lower(): str(value) for name, value in headers.items()}
    expected = item.get("expected")
    provider = str(item.get("provider") or "")
    return Sample(
        name=str(item.get("id") or place),
        adapter=asked.adapter or str(item.get("adapter") or adapter_of(provider)),
        api=asked.api or str(item.get("api") or ""),
        phase=asked.phase or str(item.get("phase") or ""),
        reply=Reply(status, told, raw, str(item.get("transport_error") or "")),
        expected=expected if isinstance(expected, Mapping) else None,
        doubtful=bool(item.get("doubtful")),
    )


def _bare(reply: Reply, asked: Asked) -> Sample:
    return Sample("reply", asked.adapter or "generic", asked.api, asked.phase, reply)


def _raw(text: str) -> Reply:
    """The last reply of a raw exchange: what comes before it were redirects, or a 100."""
    body = text
    while True:
        head, separator, body = _parted(body)
        first, *lines = head.splitlines()
        words = first.split()
        if len(words) < 2 or not words[1].isdecimal():
            raise Unreadable(f"{first[:80]!r} is no status line")
        if not separator or not body.lstrip().startswith("HTTP/"):
            break
        body = body.lstrip()
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
    return Reply(int(words[1]), headers, body.encode())


def _parted(text: str) -> tuple[str, str, str]:
    ends = [(text.find(mark), mark) for mark in ("\r\n\r\n", "\n\n") if mark in text]
    return text.partition(min(ends)[1]) if ends else (text, "", "")

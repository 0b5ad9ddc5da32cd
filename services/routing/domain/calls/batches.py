"""Embeddings in as many calls as a Supply needs, put together again in the order of their texts (SYN-11). Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from libs.faults.fault import Fault
from services.routing.domain.usage import COUNTS, Usage


class _Row(msgspec.Struct):
    """One vector; its numbers are never taken apart."""

    index: int
    embedding: msgspec.Raw


class _Part(msgspec.Struct):
    data: list[_Row]
    usage: dict[str, Any] = {}


_parts = msgspec.json.Decoder(_Part)


def texts_of(given: Any) -> list[Any]:
    """The texts of an `input`: one, or several. (A list of numbers is one text, as the tokens it is made of.)"""
    if isinstance(given, str) or (given and not isinstance(given[0], (str, list, tuple))):
        return [given]
    return list(given)


def next_batch(texts: Sequence[Any], place: int, most: int | None) -> list[Any]:
    """The texts of the next call: as many as a Supply takes at once."""
    return list(texts[place : place + most] if most else texts[place:])


def joined(outputs: Sequence[bytes], counts: Sequence[int]) -> bytes:
    """One answer from several, each for so many texts. Fault `malformed_reply` for a vector too few or too many."""
    rows: list[dict[str, Any]] = []
    usage: dict[str, int] = {}
    before = 0
    for output, count in zip(outputs, counts, strict=True):
        part = _read(output)
        if sorted(row.index for row in part.data) != list(range(count)):
            raise Fault.of("malformed_reply", f"an answer for {count} texts names the vectors {_named(part)}")
        for row in sorted(part.data, key=lambda item: item.index):
            rows.append({"object": "embedding", "index": before + row.index, "embedding": row.embedding})
        for name, value in part.usage.items():
            if isinstance(value, int):
                usage[name] = usage.get(name, 0) + value
        before += count
    return msgspec.json.encode({"object": "list", "data": rows, "usage": usage})


def _read(output: bytes) -> _Part:
    try:
        return _parts.decode(output)
    except msgspec.DecodeError as error:
        raise Fault.of("malformed_reply", f"an answer with embeddings cannot be read: {error}") from error


def _named(part: _Part) -> str:
    return ", ".join(str(row.index) for row in part.data[:20]) or "none"


def total(used: Sequence[Usage | None]) -> Usage | None:
    """What several calls have used together; a figure that none reported stays absent. None where nobody reported."""
    told = [item for item in used if item is not None]
    if not told:
        return None
    sums: dict[str, Any] = {}
    for name in (*COUNTS, "seconds"):
        figures = [value for item in told if (value := getattr(item, name)) is not None]
        if figures:
            sums[name] = sum(figures)
    return Usage(**sums)

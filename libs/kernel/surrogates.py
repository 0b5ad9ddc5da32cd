"""Halves of surrogate pairs in JSON: `"\\ud83d"` without the `\\ude00` that makes a character of it.

Clients that cut texts by UTF-16 units send them. No UTF-8 can hold one, and a strict decoder tells of it, at best, that
the text ends too early; this finds where it stands, once such a decoder has refused.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

NAMED_AT_MOST = 25


def halves_in(text: bytes) -> list[tuple[str, str]]:
    """(JSON pointer, reason) for each string that holds one; empty where that is not what is wrong."""
    if b"\\u" not in text:
        return []
    try:
        return list(islice(_halves(json.loads(text), ""), NAMED_AT_MOST))
    except (ValueError, RecursionError):
        return []


def _halves(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield from _half(value, pointer, "")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _half(name, _member(pointer, name), " in its name")
            yield from _halves(item, _member(pointer, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _halves(item, f"{pointer}/{index}")


def _half(text: str, pointer: str, where: str) -> Iterator[tuple[str, str]]:
    found = next((letter for letter in text if "\ud800" <= letter <= "\udfff"), "") if not text.isascii() else ""
    if found:
        yield (
            pointer,
            f"holds half of a surrogate pair, \\u{ord(found):04x}{where}: send the whole character, or cut it",
        )


def _member(pointer: str, name: str) -> str:
    whole = name.encode("utf-8", "backslashreplace").decode()
    return f"{pointer}/{whole.replace('~', '~0').replace('/', '~1')}"

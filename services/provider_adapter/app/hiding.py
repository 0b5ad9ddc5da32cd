"""Takes out of a fault what must not leave (ERR-4): secrets, signed URLs, and whatever the user wrote."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from libs.faults.fault import Fault
from libs.telemetry.redaction import HIDDEN, redact
from services.provider_adapter.domain.job import private_texts

WINDOW = 12
SHORTEST = 4


@contextmanager
def hiding(given: Mapping[str, Any], secret: str = "") -> Iterator[None]:
    """Faults that leave the block repeat neither `secret` nor what `given` holds."""
    try:
        yield
    except Fault as fault:
        raise hidden(fault, given, secret) from None


def hidden(fault: Fault, given: Mapping[str, Any], secret: str = "") -> Fault:
    """The fault without private words. Our own message is fixed text; the provider's words are searched."""
    private = tuple(private_texts(given))

    def told(words: str) -> str:
        return redact(without(words.replace(secret, HIDDEN) if secret else words, private))

    metadata = dict(fault.metadata)
    if "param" in metadata:  # a part of it may be a name that the user chose
        metadata["param"] = told(metadata["param"])
    words = told(fault.provider_message)
    return fault.replaced(provider_message=words, message=redact(fault.message), metadata=metadata)


def without(words: str, private: Iterable[str]) -> str:
    """`words` with every passage hidden that repeats a private text: the whole of it, or 12 characters in a row."""
    marked = bytearray(len(words))
    passages: dict[int, dict[str, list[int]]] = {}
    for text in private if words else ():
        length = min(len(text), WINDOW)
        if length < SHORTEST:
            continue
        if length not in passages:
            passages[length] = _passages(words, length)
        for start in _repeated(passages[length], text, length):
            marked[start : start + length] = b"\x01" * length
    return _masked(words, marked)


def _passages(words: str, length: int) -> dict[str, list[int]]:
    """Every passage of so many characters, and where it begins."""
    found: dict[str, list[int]] = {}
    for start in range(len(words) - length + 1):
        found.setdefault(words[start : start + length], []).append(start)
    return found


def _repeated(passages: Mapping[str, list[int]], text: str, length: int) -> Iterator[int]:
    """Where passages begin that stand in the text. The shorter of the two is gone through: the words are few, but what
    a user wrote may be one book, or a hundred thousand titles."""
    if len(text) - length < len(passages):
        for start in range(len(text) - length + 1):
            yield from passages.get(text[start : start + length], ())
    else:
        for passage, starts in passages.items():
            if passage in text:
                yield from starts


def _masked(words: str, marked: bytearray) -> str:
    parts: list[str] = []
    for index, letter in enumerate(words):
        if not marked[index]:
            parts.append(letter)
        elif not index or not marked[index - 1]:
            parts.append(HIDDEN)
    return "".join(parts)

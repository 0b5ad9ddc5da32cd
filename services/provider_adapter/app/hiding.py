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
    words = fault.provider_message
    if secret:
        words = words.replace(secret, HIDDEN)
    return fault.replaced(provider_message=redact(without(words, private)), message=redact(fault.message))


def without(words: str, private: Iterable[str]) -> str:
    """`words` with every passage hidden that repeats a private text: the whole of it, or 12 characters in a row."""
    marked = bytearray(len(words))
    for text in private if words else ():
        length = min(len(text), WINDOW)
        if length < SHORTEST:
            continue
        for start in range(len(words) - length + 1):
            if words[start : start + length] in text:  # the words are few, what a user wrote may be a book
                marked[start : start + length] = b"\x01" * length
    return _masked(words, marked)


def _masked(words: str, marked: bytearray) -> str:
    parts: list[str] = []
    for index, letter in enumerate(words):
        if not marked[index]:
            parts.append(letter)
        elif not index or not marked[index - 1]:
            parts.append(HIDDEN)
    return "".join(parts)

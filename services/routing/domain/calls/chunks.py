"""What a stream has said so far, read from its pieces (SYN-8). Pure.

A piece is a JSON object in the shape of OpenAI's `chat.completion.chunk`. The first ones may only name a role: until a
piece bears a token nothing was given to the caller, and another Supply may still serve.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from services.routing.domain.calls.sizing import BYTES_PER_TOKEN
from services.routing.domain.usage import Usage

WORDS = ("content", "reasoning_content", "reasoning", "refusal", "audio")


@dataclass(slots=True)
class Heard:
    """The account of one stream."""

    tokens_in: int
    """Estimated from the request."""
    pieces: int = 0
    """That bore a token, or a reason to stop."""
    size: int = 0
    """Bytes of all words."""

    @property
    def begun(self) -> bool:
        """Whether the first token has come."""
        return self.pieces > 0

    def hear(self, chunk: bytes) -> bool:
        """Count one piece; whether it bears a token."""
        said = _words(chunk)
        if said is None:
            return False
        self.pieces += 1
        self.size += said
        return True

    def estimate(self) -> Usage:
        """What it may have used, where its provider did not say: a token a piece at least."""
        return Usage(input_tokens=self.tokens_in, output_tokens=max(self.pieces, -(-self.size // BYTES_PER_TOKEN)))


def _words(chunk: bytes) -> int | None:
    """Bytes of words in a piece; None where it bears no token. What cannot be read counts as words."""
    try:
        read = msgspec.json.decode(chunk)
    except msgspec.DecodeError:
        return len(chunk)
    choices = read.get("choices") if isinstance(read, dict) else None
    found: int | None = None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and (said := _said(choice)) is not None:
            found = (found or 0) + said
    return found


def _said(choice: Mapping[str, Any]) -> int | None:
    delta = choice.get("delta")
    said = 0
    spoken = choice.get("finish_reason") is not None
    if isinstance(delta, dict):
        for name in WORDS:
            if word := delta.get(name):
                said += len(word.encode()) if isinstance(word, str) else len(repr(word))
        if calls := delta.get("tool_calls") or delta.get("function_call"):
            said += len(repr(calls))
    return said if said or spoken else None

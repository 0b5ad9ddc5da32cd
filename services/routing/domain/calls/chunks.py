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

WORDS = frozenset({"content", "reasoning_content", "reasoning", "refusal", "audio"})
CALLS = frozenset({"tool_calls", "function_call"})


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


class _Choice(msgspec.Struct):
    delta: Any = None
    finish_reason: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None


_chunk = msgspec.json.Decoder(_Chunk)


def _words(chunk: bytes) -> int | None:
    """Bytes of words in a piece; None where it bears no token. What cannot be read counts as words."""
    try:
        choices = _chunk.decode(chunk).choices or ()
    except msgspec.ValidationError:
        choices = _strange(chunk)
    except msgspec.DecodeError:
        return len(chunk)
    found: int | None = None
    for choice in choices:
        said = _said(choice.delta) if isinstance(choice.delta, dict) else 0
        if said or choice.finish_reason is not None:
            found = (found or 0) + said
    return found


def _strange(chunk: bytes) -> list[_Choice]:
    """The choices of a piece in a shape that nobody expects."""
    read = msgspec.json.decode(chunk)
    choices = read.get("choices") if isinstance(read, dict) else None
    found = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    return [_Choice(choice.get("delta"), choice.get("finish_reason")) for choice in found]


def _said(delta: Mapping[str, Any]) -> int:
    said = 0
    for name, word in delta.items():
        if not word:
            continue
        if name in WORDS:
            said += len(word.encode()) if isinstance(word, str) else len(repr(word))
        elif name in CALLS:
            said += len(repr(word))
    return said

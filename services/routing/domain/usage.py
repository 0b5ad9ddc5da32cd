"""What a call used, as its provider reported it.

Laws of this file:
- a figure that was not reported is None: absent is not zero;
- what has the wrong shape was not reported.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec import Struct

MOST = 2**53
"""Beyond it a number of JSON is not exact, and nobody used so much."""


class Usage(Struct, frozen=True):
    """In the units that prices are made of. Cached and cache-write tokens are among the input tokens, reasoning tokens
    among the output tokens; `seconds` is the length of what was made."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    images: int | None = None
    characters: int | None = None
    pages: int | None = None
    seconds: Decimal | None = None
    input_audio_tokens: int | None = None
    input_image_tokens: int | None = None
    output_audio_tokens: int | None = None
    output_image_tokens: int | None = None
    cache_write_long_tokens: int | None = None

    @property
    def tokens(self) -> int | None:
        """Read and made; None where neither was reported."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __bool__(self) -> bool:
        """Whether anything was reported."""
        return self != NOTHING


NOTHING = Usage()
NAMES = Usage.__struct_fields__
COUNTS = tuple(name for name in NAMES if name != "seconds")

SAID: Mapping[str, tuple[str, ...]] = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
    "images": ("images", "generated_images"),
    "cached_input_tokens": ("cached_input_tokens", "input_tokens_details.cached_tokens"),
    "input_image_tokens": ("input_image_tokens", "input_tokens_details.image_tokens"),
    "input_audio_tokens": ("input_audio_tokens", "input_tokens_details.audio_tokens"),
    "output_image_tokens": ("output_image_tokens", "output_tokens_details.image_tokens"),
    "output_audio_tokens": ("output_audio_tokens", "output_tokens_details.audio_tokens"),
    "reasoning_tokens": ("reasoning_tokens", "output_tokens_details.reasoning_tokens"),
}
"""Our figure -> what providers' reports of durable jobs call it; the others go by their own name."""


def usage_of(reported: Mapping[str, Any]) -> Usage:
    """The usage in an adapter's report of a durable job."""
    found: dict[str, Any] = {}
    for name in NAMES:
        amounts = (_amount(value) for key in SAID.get(name, (name,)) for value in _at(reported, key))
        amount = next((amount for amount in amounts if amount is not None), None)
        if amount is not None:
            found[name] = amount if name == "seconds" else int(amount)
    return Usage(**found)


MATERIALS = ("first_frame", "last_frame", "image")
WORDS = frozenset({"prompt", "messages", "text", "input", "tools", "functions"})


def price_facts(given: Mapping[str, Any], made: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The facts of an input that a price may depend on: no words of the caller, and of materials that they are there.

    `made` is what the provider says of its output: what the input left open (`auto`, `adaptive`) is read from it.
    """
    facts = {name: _fact(name, value) for name, value in given.items() if name not in WORDS}
    if isinstance(given.get("text"), str):
        facts["characters"] = len(given["text"])
    for name in ("resolution", "ratio", "size", "quality"):
        said = (made or {}).get(name)
        if isinstance(said, str) and said and str(facts.get(name)).lower() in ("auto", "adaptive"):
            facts[name] = said
    return facts


def _fact(name: str, value: Any) -> Any:
    if name in MATERIALS:
        return True
    if isinstance(value, (list, tuple)):
        return [True for _ in value]
    return value


def _at(reported: Mapping[str, Any], key: str) -> Iterator[Any]:
    name, _, rest = key.partition(".")
    value = reported.get(name)
    if not rest:
        yield value
    elif isinstance(value, Mapping):
        yield from _at(value, rest)


def _amount(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MOST:
        return None
    return Decimal(repr(value) if isinstance(value, float) else value)

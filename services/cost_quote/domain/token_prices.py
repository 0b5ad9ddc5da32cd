"""What tokens cost: at most, before a call; to the token, after it.

Laws of this file:
- sorts of tokens are parts of what was read (cached, written to the cache, audio, images) and of what was made
  (reasoning, audio, images); the rest of each is plain text, and never less than none;
- the whole request is charged at one tier; where several may come to hold, the dearest is taken;
- a ceiling is filled with the dearest sorts first, as far as the request leaves room for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from services.cost_quote.domain.facts import Asked, count_of
from services.cost_quote.domain.rules import PriceRule, TokenTier

MILLION = Decimal(1_000_000)
DEFAULT_OUTPUT_TOKENS = 4096
"""Where neither the request nor the rule names a limit."""
DEFAULT_MEDIA_TOKENS = 8192
"""Of a picture or a sound that is read, where the rule does not say."""
TOKENS_PER_MESSAGE = 8
"""What a conversation's own marks take, at most."""
READ = ("cached_input", "cache_write", "cache_write_long", "input_audio", "input_image")
MADE = ("reasoning", "output_audio", "output_image")

Cost = tuple[Decimal, str, str]
"""(amount, `exact` or `ceiling`, the arithmetic)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens by sort; None = not reported. The sorts are parts of `input` and of `output`; `cache_write_long` is a part
    of `cache_write`."""

    input: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    cache_write_long: int | None = None
    input_audio: int | None = None
    input_image: int | None = None
    output: int | None = None
    reasoning: int | None = None
    output_audio: int | None = None
    output_image: int | None = None


def cost_of_tokens(rule: PriceRule, asked: Asked, used: Tokens) -> Cost | str:
    """What these tokens cost, or why nobody can say."""
    for side, sorts in (("input", READ), ("output", MADE)):
        told = any(getattr(used, name) is not None for name in (side, *sorts))
        if not told and any(tier.prices[name] for tier in rule.tiers for name in (side, *sorts)):
            return f"the provider reported no {side}_tokens, by which {rule.id} charges"
    read = used.input or 0
    may: list[Decimal] = []
    for tier in rule.tiers:
        holds = asked.holds(tier.condition) if tier.up_to is None or read <= tier.up_to else False
        if holds is not False:
            may.append(_at(tier, used))
        if holds:
            break
    if not may:
        return f"no tier of {rule.id} holds {read} input tokens"
    return max(may), "exact" if len(may) == 1 else "ceiling", _words(used)


def _at(tier: TokenTier, used: Tokens) -> Decimal:
    parts = _parts(used)
    return sum((tier.prices[name] * count for name, count in parts.items()), Decimal(0)) / MILLION


def _parts(used: Tokens) -> dict[str, int]:
    """Disjoint counts by the price that each is charged at."""
    written = used.cache_write or 0
    long = min(used.cache_write_long or 0, written)
    cached, audio, images = used.cached_input or 0, used.input_audio or 0, used.input_image or 0
    thought, spoken, drawn = used.reasoning or 0, used.output_audio or 0, used.output_image or 0
    return {
        "input": max(0, (used.input or 0) - cached - written - audio - images),
        "cached_input": cached,
        "cache_write": written - long,
        "cache_write_long": long,
        "input_audio": audio,
        "input_image": images,
        "output": max(0, (used.output or 0) - thought - spoken - drawn),
        "reasoning": thought,
        "output_audio": spoken,
        "output_image": drawn,
    }


def _words(used: Tokens) -> str:
    parts = _parts(used)
    usual = f"{parts.pop('input')} tokens in, {parts.pop('cached_input')} cached, {parts.pop('output')} out"
    return ", ".join([usual, *(f"{count} {name}" for name, count in parts.items() if count)])


# --- Before the call --------------------------------------------------------------------------------------------------


def ceiling_of(rule: PriceRule, asked: Asked) -> Cost | str:
    """The most that the request can cost."""
    read, made = tokens_in(rule, asked.request), _tokens_out(rule, asked)
    if isinstance(made, str):
        return made
    may: list[Decimal] = []
    passed, covered = -1, False
    for tier in rule.tiers:
        end = read if tier.up_to is None else min(read, tier.up_to)
        holds = asked.holds(tier.condition) if end > passed else False
        if holds is False:
            continue
        may.append(_most(tier, "input", end, READ, asked) + _most(tier, "output", made, MADE, asked))
        covered = covered or end == read
        passed = end if holds else passed
        if passed == read:
            break
    if not covered:
        return f"no tier of {rule.id} holds {read} input tokens"
    return max(may) / MILLION, "ceiling", f"at most {read} tokens in, {made} out"


def _most(tier: TokenTier, plain: str, count: int, sorts: tuple[str, ...], asked: Asked) -> Decimal:
    """The most that `count` tokens cost, each of whatever sort the request leaves possible."""
    total, left = Decimal(0), count
    for name in sorted(sorts, key=lambda name: tier.prices[name], reverse=True):
        if tier.prices[name] <= tier.prices[plain]:
            break
        limit = asked.request.get(f"{name}_tokens")
        taken = left if limit is None else min(left, count_of(limit))
        total, left = total + tier.prices[name] * taken, left - taken
    return total + tier.prices[plain] * left


def _tokens_out(rule: PriceRule, asked: Asked) -> int | str:
    """Tokens made at most, all answers together."""
    answers = max(1, count_of(asked.request.get("n")))
    if rule.image_tokens is not None:
        each = _picture(rule, asked)
        return each if isinstance(each, str) else each * answers
    names = ("max_output_tokens", "max_completion_tokens", "max_tokens")
    said = next((count for name in names if (count := count_of(asked.request.get(name)))), 0)
    return (said or rule.max_output_tokens or DEFAULT_OUTPUT_TOKENS) * answers


def _picture(rule: PriceRule, asked: Asked) -> int | str:
    """Tokens of one picture: the most of what is possible where size or quality are left to the provider."""
    assert rule.image_tokens is not None
    counts = [
        count
        for size, by_quality in rule.image_tokens.sizes.items()
        if _may_be(asked, "size", size)
        for quality, count in by_quality.items()
        if _may_be(asked, "quality", quality)
    ]
    said = ", ".join(f"{name}={asked.fact(name)}" for name in ("size", "quality"))
    return max(counts) if counts else f"{rule.id} knows no picture of {said}"


def _may_be(asked: Asked, name: str, value: str) -> bool:
    return value == "*" or not asked.given(name) or asked.undecided(name) or str(asked.fact(name)) == value


def tokens_in(rule: PriceRule, request: Mapping[str, Any]) -> int:
    """Tokens read at most: as said, else one for each byte of text, which no tokeniser exceeds, and what the rule says
    of a picture or a sound."""
    if "input_tokens" in request:
        return count_of(request["input_tokens"])
    messages = [message for message in request.get("messages") or () if isinstance(message, Mapping)]
    texts = [request.get(name) for name in ("prompt", "text", "input", "tools")] + messages
    media = len(request.get("reference_images") or ()) + sum(_media(message.get("content")) for message in messages)
    each = DEFAULT_MEDIA_TOKENS if rule.input_image_tokens is None else rule.input_image_tokens
    return sum(_bytes(text) for text in texts) + TOKENS_PER_MESSAGE * len(messages) + each * media


def _media(content: Any) -> int:
    return sum(1 for part in content if _is_media(part)) if isinstance(content, (list, tuple)) else 0


def _is_media(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type", "text") not in ("text", "input_text")


def _bytes(text: Any) -> int:
    if isinstance(text, str):
        return len(text.encode("utf-8", "surrogatepass"))
    if isinstance(text, Mapping):
        return sum(_bytes(item) for item in text.values())
    if isinstance(text, (list, tuple)):
        return sum(0 if _is_media(item) else _bytes(item) for item in text)
    return 0

"""What the tokens of a call cost, by the rates that came with its quote.

Laws of this file:
- cost_quote prices usage; what is reckoned here is the plain case, and comes to the same nano: rounded once, half to
  even;
- what is not plain is left to cost_quote: a side that was not reported, sorts that the rates say nothing of, parts that
  are more than their whole.
"""

from typing import NamedTuple

from services.routing.domain.usage import Usage

MILLION = 1_000_000


class TokenRates(NamedTuple):
    """Nanos of the catalogue's currency for a million tokens of each sort. The sorts are disjoint."""

    input: int
    cached_input: int
    output: int
    reasoning: int


def cost_nanos(rates: TokenRates, used: Usage) -> int | None:
    """What was used costs so many nanos; None where cost_quote is to be asked."""
    read, made = used.input_tokens, used.output_tokens
    cached, thought = used.cached_input_tokens or 0, used.reasoning_tokens or 0
    if read is None or made is None or cached > read or thought > made or _has_other_sorts(used):
        return None
    total = (
        rates.input * (read - cached)
        + rates.cached_input * cached
        + rates.output * (made - thought)
        + rates.reasoning * thought
    )
    nanos, rest = divmod(total, MILLION)
    up = 2 * rest > MILLION or (2 * rest == MILLION and nanos % 2)
    return nanos + 1 if up else nanos


def _has_other_sorts(used: Usage) -> bool:
    return bool(
        used.cache_write_tokens
        or used.cache_write_long_tokens
        or used.input_audio_tokens
        or used.input_image_tokens
        or used.output_audio_tokens
        or used.output_image_tokens
    )

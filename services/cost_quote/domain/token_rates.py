"""What a million tokens cost by a rule that charges for nothing else, so that whoever was quoted can settle by itself.

Law of this file: a rule whose price takes more than counting tokens has no rates here. Whoever has none asks what
usage costs, and is answered by all of the rule.
"""

from decimal import Decimal
from typing import NamedTuple

from services.cost_quote.domain.pricing import EXACTLY
from services.cost_quote.domain.rules import ALWAYS, BillingMode, PriceRule

NANO_DIGITS = 9
MOST_NANOS = 10**16
"""Of a rate: what any number of tokens costs by lesser ones is an amount that the wire can carry."""


class TokenRates(NamedTuple):
    """Nanos of the book's currency for a million tokens of each sort. The sorts are disjoint."""

    input: int
    cached_input: int
    output: int
    reasoning: int


def rates_of(rule: PriceRule, exchange_rate: Decimal | None) -> TokenRates | None:
    """The rates of `rule` at that exchange rate; None where there is none, where tokens are not all, or where a rate is
    no whole number of nanos."""
    if exchange_rate is None or _charges_beyond_tokens(rule):
        return None
    if rule.billing_mode is not BillingMode.PER_TOKEN or len(rule.tiers) != 1:
        return None
    tier = rule.tiers[0]
    if tier.up_to is not None or tier.condition != ALWAYS:
        return None
    exact = (EXACTLY.multiply(tier.prices[name], exchange_rate) for name in TokenRates._fields)
    nanos = [figure.scaleb(NANO_DIGITS, EXACTLY) for figure in exact]
    if any(figure != figure.to_integral_value() or figure >= MOST_NANOS for figure in nanos):
        return None
    return TokenRates(*map(int, nanos))


def _charges_beyond_tokens(rule: PriceRule) -> bool:
    more = rule.surcharges or rule.multipliers or rule.times or rule.minimum or rule.video_tokens
    return bool(more) or rule.credit is not None

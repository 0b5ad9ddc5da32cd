"""What a call that was made costs, by what its provider reported.

Laws of this file:
- a figure that was not reported is absent, and absent is not zero: what is charged by it is taken from the request
  where the request alone decides it, else there is no price;
- the rule is the version that quoted, the rates are those of its catalogue revision, also where both are retired, and
  the hour is that of the submission.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from services.cost_quote.domain.facts import Asked
from services.cost_quote.domain.pricing import Priced, Unpriced, charge
from services.cost_quote.domain.rules import BillingMode, PriceRule
from services.cost_quote.domain.token_prices import Tokens


@dataclass(frozen=True, slots=True)
class Usage:
    """As a provider reported it; None = it did not say. Cached and cache-write tokens are among the input tokens,
    reasoning tokens among the output tokens."""

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

    def tokens(self) -> Tokens:
        """Tokens by sort."""
        return Tokens(
            input=self.input_tokens,
            cached_input=self.cached_input_tokens,
            cache_write=self.cache_write_tokens,
            cache_write_long=self.cache_write_long_tokens,
            input_audio=self.input_audio_tokens,
            input_image=self.input_image_tokens,
            output=self.output_tokens,
            reasoning=self.reasoning_tokens,
            output_audio=self.output_audio_tokens,
            output_image=self.output_image_tokens,
        )


@dataclass(frozen=True, slots=True)
class Used:
    """One call to be settled. `request` holds its facts, for what usage does not say."""

    key: str
    rule: str
    version: int
    request: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()
    revision: int = 0
    """Catalogue revision that quoted it; 0 = the newest that has the rule's version."""
    at: datetime | None = None
    """When it was submitted, in UTC."""


REPORTED: Mapping[BillingMode, tuple[str, str]] = {
    BillingMode.PER_SECOND: ("seconds", "duration_s"),
    BillingMode.PER_IMAGE: ("images", "n"),
    BillingMode.PER_CHARACTER: ("characters", "characters"),
    BillingMode.PER_PAGE: ("pages", "pages"),
}
"""Mode -> the figure of usage that it charges by, and the fact of the request that it stands for."""


def settle(rule: PriceRule, request: Mapping[str, Any], usage: Usage, at: datetime | None = None) -> Priced | Unpriced:
    """What that usage costs under `rule`, in its own currency; `ceiling` where what decides was not reported."""
    facts = dict(request)
    asked = Asked(request)
    for mode, (figure, fact) in REPORTED.items():
        said = getattr(usage, figure)
        own = mode is rule.billing_mode or fact == rule.times
        if said is not None and (own or not asked.given(fact) or asked.undecided(fact)):
            facts[fact] = said
    tokens = usage.tokens()
    missing = _missing(rule, Asked(facts), tokens)
    if missing:
        return Unpriced(f"the provider reported no {missing}, by which {rule.id} charges")
    return charge(rule, Asked(facts, at), tokens)


def _missing(rule: PriceRule, asked: Asked, tokens: Tokens) -> str:
    """The figure that the rule charges by and that neither usage nor the request decide."""
    if rule.billing_mode not in REPORTED or rule.quantity or (rule.video_tokens and tokens.output is not None):
        return ""
    figure, fact = REPORTED[rule.billing_mode]
    open_ = asked.undecided(fact) or (fact == "pages" and not asked.given(fact))
    return figure if open_ else ""

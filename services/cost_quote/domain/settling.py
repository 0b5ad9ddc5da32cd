"""What a call that was made costs, by what its provider reported.

Laws of this file:
- a figure that was not reported is absent, and absent is not zero: what is charged by it is taken from the request
  where the request alone decides it, else there is no price;
- the rule is the version that quoted, the rates are those of its catalogue revision, also where both are retired.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from services.cost_quote.domain.pricing import Asked, Priced, Unpriced, price_asked, price_tokens
from services.cost_quote.domain.rules import BillingMode, PriceRule


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


REPORTED: Mapping[BillingMode, tuple[str, str]] = {
    BillingMode.PER_SECOND: ("seconds", "duration_s"),
    BillingMode.PER_IMAGE: ("images", "n"),
    BillingMode.PER_CHARACTER: ("characters", "characters"),
    BillingMode.PER_PAGE: ("pages", "pages"),
}
"""Mode -> the figure of usage that it charges by, and the fact of the request that it stands for."""


def settle(rule: PriceRule, request: Mapping[str, Any], usage: Usage) -> Priced | Unpriced:
    """What that usage costs under `rule`, in its own currency."""
    if rule.billing_mode is BillingMode.PER_TOKEN:
        return price_tokens(rule, usage)
    figure, fact = REPORTED.get(rule.billing_mode, ("", ""))
    said = getattr(usage, figure) if figure else None
    facts = request if said is None else {**request, fact: said}
    found = price_asked(rule, Asked(facts))
    if isinstance(found, Priced) and found.kind != "exact":
        return Unpriced(f"the provider reported no {figure}, by which {rule.id} charges")
    return found

"""Rates that come with a quote: whoever reckons with them comes to the nano that cost_quote would have told."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.quoting import PriceBook, Quote, converted
from services.cost_quote.domain.settling import Usage, settle
from services.routing.domain.calls.token_rates import TokenRates, cost_nanos
from services.routing.domain.usage import Usage as Reported

TOKENS = {"version": 1, "currency": "USD", "billing_mode": "per_token", "input_per_million": "2.50"}
PLAIN = {"id": "plain", **TOKENS, "output_per_million": "10.00", "cached_input_per_million": "0.6251"}
THINKING = {"id": "thinking", **TOKENS, "output_per_million": "0", "reasoning_per_million": "3"}
SOLD = PLAIN | {"currency": "CNY", "input_per_million": "0.000001", "output_per_million": "0.0000005"}
BEYOND: dict[str, dict[str, Any]] = {
    "tiers": {"id": "t", **{name: TOKENS[name] for name in ("version", "currency", "billing_mode")}}
    | {"tiers": [{"up_to": 1000, "input_per_million": "1"}, {"input_per_million": "2"}]},
    "multipliers": PLAIN | {"multipliers": [{"when": {"service_tier": "flex"}, "factor": "0.5"}]},
    "minimum": PLAIN | {"minimum": "0.01"},
    "times": PLAIN | {"times": "n"},
    "surcharges": PLAIN | {"surcharges": [{"field": "searches", "rate": "0.01"}]},
    "no exchange rate": PLAIN | {"currency": "EUR"},
    "a fraction of a nano": PLAIN | {"input_per_million": "0.00000000005"},
    "another mode": {"id": "s", "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": "1.00"},
}
COUNTS = st.none() | st.integers(0, 3_000_000)


def book_of(spec: dict[str, Any]) -> PriceBook:
    """A book of one rule."""
    rule = parse_rule(spec)
    return PriceBook(7, "CNY", {"USD": Decimal("7.12")}, {rule.id: rule})


@given(
    spec=st.sampled_from((PLAIN, THINKING, SOLD)),
    used=st.fixed_dictionaries(
        dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"), COUNTS)
    ),
    other=st.fixed_dictionaries({}, optional={"cache_write_tokens": COUNTS, "output_audio_tokens": COUNTS}),
)
@example(spec=SOLD, used={"input_tokens": 500, "output_tokens": 0}, other={})
@example(spec=SOLD, used={"input_tokens": 1_500, "output_tokens": 0}, other={})
def test_rates_come_to_what_the_rule_does(spec: dict[str, Any], used: dict[str, Any], other: dict[str, Any]) -> None:
    """COST-3: what tokens cost by the rates that a quote carried is what its rule charges, to the nano, rounded half to
    even; where the rates do not tell, cost_quote is asked."""
    book = book_of(spec)
    (rule,) = book.rules.values()
    rates = TokenRates(*book.token_rates[rule.id])
    nanos = cost_nanos(rates, Reported(**used, **other))
    if nanos is None:
        return
    settled = converted(book, rule, settle(rule, {}, Usage(**used, **other)))
    assert isinstance(settled, Quote)
    assert settled.amount.to_nanos() == nanos


@pytest.mark.parametrize("spec", BEYOND.values(), ids=BEYOND)
def test_a_price_of_more_than_tokens_has_no_rates(spec: dict[str, Any]) -> None:
    """COST-2, COST-4: a rule that charges for anything but tokens at one rate is never reckoned elsewhere."""
    assert not book_of(spec).token_rates


@pytest.mark.parametrize(
    "used",
    (
        Reported(input_tokens=10),
        Reported(output_tokens=10),
        Reported(input_tokens=10, output_tokens=1, cached_input_tokens=11),
        Reported(input_tokens=10, output_tokens=1, reasoning_tokens=2),
        Reported(input_tokens=10, output_tokens=1, cache_write_tokens=1),
        Reported(input_tokens=10, output_tokens=1, input_image_tokens=1),
    ),
)
def test_what_the_rates_do_not_tell_is_asked_for(used: Reported) -> None:
    """COST-4: a side that was not reported, a part beyond its whole or a sort of another price is no sum of rates."""
    assert cost_nanos(TokenRates(1, 1, 1, 1), used) is None

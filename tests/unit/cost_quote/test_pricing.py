"""Prices as arithmetic."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cost_quote.domain.parsing import RuleError, parse_rule
from services.cost_quote.domain.pricing import Priced, Unpriced, price

SECONDS = {
    "id": "s",
    "currency": "CNY",
    "billing_mode": "per_second",
    "rate": "1.00",
    "rates": [{"when": {"resolution": "1080p"}, "rate": "2.50"}],
    "minimum": "4.00",
}
FLAT = {
    "id": "f",
    "currency": "CNY",
    "billing_mode": "per_request",
    "bands": [{"field": "duration_s", "from": 4, "to": 15, "price": "6.00"}],
}
TOKENS = {
    "id": "t",
    "currency": "USD",
    "billing_mode": "per_token",
    "input_per_million": "0.15",
    "cached_input_per_million": "0.075",
    "output_per_million": "0.60",
}


def amount(spec: dict[str, Any], **request: Any) -> Decimal | str:
    """The amount, or the reason why there is none."""
    found = price(parse_rule(spec), request)
    return found.amount if isinstance(found, Priced) else found.reason


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"duration_s": 5}, "5.00"),
        ({"duration_s": 5, "resolution": "1080p"}, "12.50"),
        ({"duration_s": 5, "resolution": "720p"}, "5.00"),
        ({"duration_s": 2}, "4.00"),
        ({"duration_s": 4.5}, "4.50"),
    ],
)
def test_seconds(request_: dict[str, Any], expected: str) -> None:
    """COST-1: a price per second depends on the resolution and has a minimum."""
    assert amount(SECONDS, **request_) == Decimal(expected)


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", "1e999999", -1, 10**18, True, [5]])
def test_what_is_no_quantity_has_no_price(seconds: Any) -> None:
    """COST-4: an endless, negative or absurd figure is neither free nor an error of ours."""
    assert "needs duration_s" in str(amount({**SECONDS, "rates": []}, duration_s=seconds))
    assert isinstance(amount(TOKENS, prompt="x", max_tokens=seconds), Decimal)


def test_a_band_is_the_price_of_the_whole_clip() -> None:
    """COST-2: 4-15 s at 6.00 means that 5 s cost 6.00, as do 4 and 15; 16 s have no price."""
    assert [amount(FLAT, duration_s=d) for d in (4, 5, 15)] == [Decimal("6.00")] * 3
    assert "no band" in str(amount(FLAT, duration_s=16))
    assert "no band" in str(amount(FLAT, duration_s=3.99))


def test_images_multiply() -> None:
    """COST-1: a price per image counts the images asked for, one where nothing is said."""
    spec = {"id": "i", "currency": "CNY", "billing_mode": "per_image", "rate": "0.20"}
    assert amount(spec, prompt="x") == Decimal("0.20")
    assert amount(spec, n=4) == Decimal("0.80")


def test_characters_and_pages() -> None:
    """COST-1: speech is charged by the character, documents by the page."""
    speech = {"id": "c", "currency": "CNY", "billing_mode": "per_character", "rate": "0.0001"}
    assert amount(speech, text="hello") == Decimal("0.0005")
    pages = {"id": "p", "currency": "CNY", "billing_mode": "per_page", "rate": "0.03"}
    assert amount(pages, pages=3) == Decimal("0.09")
    unknown = price(parse_rule(pages), {})
    assert isinstance(unknown, Priced)
    assert unknown.kind == "ceiling"


def test_tokens_of_known_usage_are_exact() -> None:
    """COST-1: input, cached input and output have their own rates."""
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 400_000, "output_tokens": 100_000}
    found = price(parse_rule(TOKENS), {"usage": usage})
    assert found == Priced(Decimal("0.18"), "exact", "600000 tokens in, 400000 cached, 100000 out")


def test_a_context_tier_reprices_the_whole_request() -> None:
    """COST-1: tiers by context length are all or nothing, with the boundary in the lower tier."""
    tiers = [
        {"up_to": 1000, "input_per_million": "1", "output_per_million": "2"},
        {"input_per_million": "3", "output_per_million": "6"},
    ]
    spec = {"id": "t", "currency": "USD", "billing_mode": "per_token", "tiers": tiers}
    low = amount(spec, usage={"input_tokens": 1000, "output_tokens": 1000})
    high = amount(spec, usage={"input_tokens": 1001, "output_tokens": 1000})
    assert low == Decimal("0.003")
    assert high == Decimal("0.009003")


@pytest.mark.parametrize(
    ("spec", "request_", "missing"),
    [
        (SECONDS, {}, "duration_s"),
        (FLAT, {}, "band"),
        ({"id": "c", "currency": "CNY", "billing_mode": "per_character", "rate": "1"}, {}, "text"),
        (
            {
                "id": "r",
                "currency": "CNY",
                "billing_mode": "per_second",
                "rates": [{"when": {"resolution": "720p"}, "rate": "1"}],
            },
            {"duration_s": 5, "resolution": "4k"},
            "resolution=4k",
        ),
    ],
)
def test_what_cannot_be_priced_is_never_free(spec: dict[str, Any], request_: dict[str, Any], missing: str) -> None:
    """COST-4: a missing figure gives a reason that names it, not a zero."""
    found = price(parse_rule(spec), request_)
    assert isinstance(found, Unpriced)
    assert missing in found.reason


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"rate": 0.1}, "rate"),
        ({"rate": "-1"}, "rate"),
        ({"rate": "much"}, "rate"),
        ({"billing_mode": "per_mood"}, "billing_mode"),
        ({"rates": [{"when": {}, "rate": "NaN"}]}, "rates[0].rate"),
        ({"bands": [{"field": "n", "from": 5, "to": 4, "price": "1"}]}, "bands[0]"),
    ],
)
def test_a_rule_that_cannot_be_understood_is_refused(change: dict[str, Any], path: str) -> None:
    """COST-3: floats, negatives and nonsense are refused with their path."""
    with pytest.raises(RuleError) as caught:
        parse_rule({**SECONDS, **change})
    assert path in [found for found, _ in caught.value.faults]


def test_a_rule_without_a_figure_is_refused() -> None:
    """COST-4: a rule that names no amount is no rule."""
    with pytest.raises(RuleError):
        parse_rule({"id": "x", "currency": "CNY", "billing_mode": "per_second"})


@given(
    st.decimals(min_value=0, max_value=1000, places=4),
    st.integers(min_value=1, max_value=600),
    st.decimals(min_value=0, max_value=100, places=2),
)
def test_seconds_are_exact_decimals(rate: Decimal, seconds: int, minimum: Decimal) -> None:
    """COST-3: the amount is the decimal product, or the minimum, to the last digit."""
    spec = {"id": "s", "currency": "CNY", "billing_mode": "per_second", "rate": str(rate), "minimum": str(minimum)}
    assert amount(spec, duration_s=seconds) == max(rate * seconds, minimum)

"""Quotes for several Supplies."""

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libs.kernel.money import NANO, Money
from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Priced, Unpriced, price
from services.cost_quote.domain.quoting import MOST, Candidate, PriceBook, Quote, quote_candidates
from services.cost_quote.domain.rules import BillingMode

SPECS = (
    {"id": "second", "version": 3, "currency": "CNY", "billing_mode": "per_second", "rate": "1.00"},
    {"id": "dollar", "version": 1, "currency": "USD", "billing_mode": "per_second", "rate": "0.10"},
    {"id": "euro", "version": 1, "currency": "EUR", "billing_mode": "per_second", "rate": "0.10"},
    {"id": "clip", "version": 2, "currency": "CNY", "billing_mode": "per_request", "rate": "2.00"},
)
BOOK = PriceBook(7, "CNY", {"USD": Decimal("7.00")}, {rule.id: rule for rule in map(parse_rule, SPECS)})
FIVE = {"duration_s": 5}


def quotes(*candidates: Candidate, mode: BillingMode | None = None, kind: str = "video") -> list[Quote | Unpriced]:
    """The quotes alone."""
    return list(quote_candidates(BOOK, kind, mode, FIVE, candidates)[0])


def test_a_quote_names_its_rule_version_and_rate() -> None:
    """COST-3: a dollar price is converted by the told rate, and the quote names version, rate and revision."""
    [quote] = quotes(Candidate("a", ("dollar",)))
    assert isinstance(quote, Quote)
    assert quote.amount == Money("CNY", Decimal("3.50"))
    assert quote.original == Money("USD", Decimal("0.50"))
    assert (quote.price_rule.id, quote.price_rule.version, quote.exchange_rate, quote.book.revision) == (
        "dollar", 1, Decimal("7.00"), 7,
    )  # fmt: skip


def test_a_currency_without_a_rate_is_unpriced() -> None:
    """COST-4: no rate, no price."""
    [quote] = quotes(Candidate("a", ("euro",)))
    assert quote == Unpriced("no exchange rate from EUR to CNY")


def test_a_video_without_a_billing_mode_means_per_second() -> None:
    """COST-1: `per_request` must be asked for, and the mode is a hard filter."""
    clip_only = Candidate("a", ("clip",))
    both = Candidate("b", ("clip", "second"))
    assert isinstance(quotes(clip_only)[0], Unpriced)
    [said_nothing] = quotes(both)
    [asked] = quotes(both, mode=BillingMode.PER_REQUEST)
    assert isinstance(said_nothing, Quote)
    assert isinstance(asked, Quote)
    assert (said_nothing.price_rule.id, asked.price_rule.id) == ("second", "clip")


def test_no_rule_no_price() -> None:
    """COST-4: a Supply without a rule, or with one that is not in force, is unpriced."""
    found = quotes(Candidate("a", ()), Candidate("b", ("gone",)))
    assert all(isinstance(quote, Unpriced) for quote in found)


def test_the_baseline_is_the_lowest_quote_of_those_that_count() -> None:
    """COST-5: cheaper quotes of Supplies that do not count leave the baseline alone; unpriced ones too."""
    candidates = [
        Candidate("exact-dear", ("second",), counts_for_baseline=True),
        Candidate("exact-cheap", ("dollar",), counts_for_baseline=True),
        Candidate("exact-unpriced", (), counts_for_baseline=True),
        Candidate("fallback", ("clip",), counts_for_baseline=False),
    ]
    _, baseline = quote_candidates(BOOK, "video", None, FIVE, candidates)
    assert baseline == Money("CNY", Decimal("3.50"))
    assert quote_candidates(BOOK, "video", None, FIVE, candidates[3:])[1] is None


def test_a_degraded_candidate_is_priced_on_what_it_would_be_sent() -> None:
    """TIER-4: the transformed input decides the price."""
    [quote] = quotes(Candidate("a", ("second",), input={"duration_s": 3}))
    assert isinstance(quote, Quote)
    assert quote.amount == Money("CNY", Decimal("3.00"))


@given(
    st.decimals(0, 10**12, places=12, allow_nan=False) | st.sampled_from([Decimal("0.93"), Decimal("1E+3")]),
    st.integers(0, 10**11) | st.floats(0, 10**6),
)
@example(Decimal("999999999999.999999999999"), 10**11)
@example(Decimal(10**9), 10**9)
@example(Decimal("999999999.999999999"), 999_999_999)
def test_the_short_way_to_a_quote_ends_where_the_long_one_does(rate: Decimal, seconds: float) -> None:
    """COST-3: a rule that is a quantity times one rate is quoted to the same nano, in the same words, as by `price`."""
    usual = {"version": 1, "currency": "CNY", "billing_mode": "per_second"}
    rule = parse_rule({**usual, "id": "s", "rate": str(rate)})
    candidates = [Candidate("a", ("s",))]
    request = {"duration_s": seconds}
    [quote], _ = quote_candidates(PriceBook(1, "CNY", {}, {"s": rule}), "video", None, request, candidates)
    long = price(rule, request)
    assert isinstance(long, Priced)
    if long.amount >= MOST:
        assert isinstance(quote, Unpriced)
        return
    assert isinstance(quote, Quote)
    assert str(quote.value) == str(long.amount.quantize(NANO, ROUND_HALF_EVEN))
    assert (quote.own_value, quote.explanation, quote.kind) == (quote.value, long.explanation, long.kind)


@pytest.mark.parametrize("currency", ["CNY", "USD"])
@pytest.mark.parametrize("mode", ["per_second", "per_request"])
def test_an_amount_beyond_what_a_quote_holds_is_no_price(currency: str, mode: str) -> None:
    """COST-4: a price that the exact arithmetic or the wire cannot hold leaves the Supply unpriced, with the amount."""
    spec = {"id": "s", "version": 1, "currency": currency, "billing_mode": mode, "rate": "9e26"}
    book = PriceBook(1, "CNY", {"USD": Decimal(7)}, {"s": parse_rule(spec)})
    [quote], _ = quote_candidates(book, "video", BillingMode(mode), {"duration_s": 10}, [Candidate("a", ("s",))])
    assert isinstance(quote, Unpriced)
    assert "more than a quote can hold" in quote.reason

"""Laws of all prices, on rules and requests of every shape: a ceiling is one, no digit is lost, more costs no less."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.pricing import Priced, price
from services.cost_quote.domain.rules import TOKEN_PRICES
from services.cost_quote.domain.settling import Usage, settle

AMOUNT = st.decimals(0, 1000, places=9).map(str)
FACTOR = st.decimals(0, 3, places=3).map(str)
RESOLUTIONS, RATIOS = ("480p", "720p"), ("16:9", "1:1")
TIME = st.times().map(lambda at: f"{at:%H:%M}")
CONDITION = st.fixed_dictionaries(
    {},
    optional={
        "when": st.dictionaries(
            st.sampled_from(["resolution", "ratio", "service_tier", "reference_images"]),
            st.sampled_from(["480p", "16:9", "flex", ["720p", "1:1"], {"given": True}, {"from": 2}]),
            max_size=2,
        ),
        "hours": st.fixed_dictionaries({"from": TIME, "to": TIME}),
    },
)
TIER = st.fixed_dictionaries(
    {"input_per_million": AMOUNT},
    optional={
        **{f"{name}_per_million": AMOUNT for name in TOKEN_PRICES if name != "input"},
        "up_to": st.integers(1, 3000),
    },
)


def with_condition(entry: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """The entry under some condition."""
    return st.builds(lambda a, b: {**a, **b}, entry, CONDITION)


TOTAL = {
    "minimum": AMOUNT,
    "times": st.just("n"),
    "surcharges": st.lists(
        with_condition(
            st.fixed_dictionaries(
                {"field": st.just("reference_images"), "rate": AMOUNT, "free": st.integers(0, 2), "most": st.just(9)}
            )
        ),
        max_size=2,
    ),
    "multipliers": st.lists(with_condition(st.fixed_dictionaries({"factor": FACTOR})), max_size=2),
    "credits": st.fixed_dictionaries({"price": AMOUNT}, optional={"whole": st.booleans()}),
}
FRAMES = {"480p": {"16:9": "864x496", "1:1": "640x640"}, "720p": {"16:9": "1280x720", "1:1": "961x959"}}
UNITS = st.fixed_dictionaries(
    {"billing_mode": st.just("per_second"), "rate": AMOUNT, "most_units": st.just(20)},
    optional={
        **TOTAL,
        "rates": st.lists(with_condition(st.fixed_dictionaries({"rate": AMOUNT})), max_size=3),
        "per": st.sampled_from([1, 60, 1000]),
        "round_up_to": st.sampled_from([1, 5, "0.5"]),
        "least_units": st.integers(0, 6),
        "video_tokens": st.just({"fps": 24, "frames": FRAMES}),
    },
)
TOKENS = st.fixed_dictionaries(
    {"billing_mode": st.just("per_token"), "tiers": st.lists(with_condition(TIER), min_size=1, max_size=4)},
    optional={**{name: part for name, part in TOTAL.items() if name != "times"}, "max_output_tokens": st.just(500)},
)
REQUEST = st.fixed_dictionaries(
    {
        "resolution": st.sampled_from([*RESOLUTIONS, "auto"]),
        "ratio": st.sampled_from([*RATIOS, "adaptive"]),
        "reference_images": st.lists(st.just({}), max_size=4),
    },
    optional={"service_tier": st.sampled_from(["flex", "auto"]), "n": st.integers(1, 3)},
)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
MOMENT = st.integers(0, 14 * 24 * 60).map(lambda minutes: NOON + timedelta(minutes=minutes))


def rule(spec: dict[str, Any]) -> Any:
    """Parsed."""
    return parse_rule({"id": "r", "currency": "USD", **spec})


@st.composite
def decided(draw: st.DrawFn, request: dict[str, Any]) -> dict[str, Any]:
    """The request once its provider has chosen what was left to it."""
    chosen = dict(request)
    for name, values in (("resolution", RESOLUTIONS), ("ratio", RATIOS)):
        if request[name] in ("auto", "adaptive"):
            chosen[name] = draw(st.sampled_from(values))
    if request.get("service_tier") == "auto":
        chosen["service_tier"] = draw(st.sampled_from(["flex", "default"]))
    return chosen


@given(st.data(), UNITS, REQUEST, st.none() | MOMENT, MOMENT)
def test_a_ceiling_bounds_every_settlement_of_seconds(
    data: st.DataObject, spec: dict[str, Any], request: dict[str, Any], quoted: datetime | None, at: datetime
) -> None:
    """COST-1, COST-3: whatever the provider chooses and reports, no longer than asked, costs at most the quote; what
    was exact costs it exactly."""
    asked_s = data.draw(st.just(-1) | st.integers(1, 20))
    request = {**request, "duration_s": asked_s}
    quote = price(rule(spec), request, quoted)
    assert isinstance(quote, Priced)
    seconds = data.draw(st.decimals(1, 20, places=2)) if asked_s == -1 else Decimal(asked_s)
    facts = data.draw(decided(request))
    paid = settle(rule(spec), facts, Usage(seconds=seconds), quoted or at)
    assert isinstance(paid, Priced)
    assert paid.amount <= quote.amount
    if quote.kind == "exact":
        assert paid.amount == quote.amount


PARTS = ("cached_input", "cache_write", "input_audio", "input_image"), ("reasoning", "output_audio", "output_image")


@st.composite
def used(draw: st.DrawFn, most_in: int, most_out: int) -> Usage:
    """Usage within the bounds, its parts disjoint."""
    figures: dict[str, int] = {}
    for plain, most, parts in (("input", most_in, PARTS[0]), ("output", most_out, PARTS[1])):
        left = figures[f"{plain}_tokens"] = draw(st.integers(0, most))
        for part in draw(st.permutations(parts)):
            figures[f"{part}_tokens"] = draw(st.integers(0, left))
            left -= figures[f"{part}_tokens"]
    figures["cache_write_long_tokens"] = draw(st.integers(0, figures["cache_write_tokens"]))
    return Usage(**cast(dict[str, Any], figures))


@given(st.data(), TOKENS, REQUEST, st.none() | MOMENT, MOMENT)
def test_a_ceiling_bounds_every_settlement_of_tokens(
    data: st.DataObject, spec: dict[str, Any], request: dict[str, Any], quoted: datetime | None, at: datetime
) -> None:
    """COST-1, COST-3: no split of the tokens, no tier and no hour costs more than the quote."""
    read, made = data.draw(st.integers(0, 4000)), data.draw(st.integers(1, 2000))
    quote = price(rule(spec), {**request, "input_tokens": read, "max_output_tokens": made}, quoted)
    usage = data.draw(used(read, made * request.get("n", 1)))
    paid = settle(rule(spec), data.draw(decided(request)), usage, quoted or at)
    if isinstance(quote, Priced) and isinstance(paid, Priced):
        assert paid.amount <= quote.amount


@given(UNITS, REQUEST, st.integers(0, 20), st.integers(0, 20), MOMENT)
def test_more_seconds_never_cost_less(
    spec: dict[str, Any], request: dict[str, Any], less: int, more: int, at: datetime
) -> None:
    """COST-3: a price by units only grows with them."""
    less, more = sorted((less, more))
    cheap, dear = (price(rule(spec), {**request, "duration_s": seconds}, at) for seconds in (less, more))
    assert isinstance(cheap, Priced)
    assert isinstance(dear, Priced)
    assert cheap.amount <= dear.amount


@given(TIER, used(4000, 2000), used(4000, 2000))
def test_more_tokens_never_cost_less(tier: dict[str, Any], first: Usage, second: Usage) -> None:
    """COST-3: of one tier, tokens added to tokens are money added to money, to the last digit."""
    spec = {"billing_mode": "per_token", **{name: rate for name, rate in tier.items() if name != "up_to"}}
    names = [name for name in Usage.__slots__ if getattr(first, name) is not None]
    both = Usage(**{name: getattr(first, name) + getattr(second, name) for name in names})
    paid = [settle(rule(spec), {}, usage) for usage in (first, second, both)]
    amounts = [item.amount for item in paid if isinstance(item, Priced)]
    assert amounts[0] + amounts[1] == amounts[2]


@given(
    st.decimals(0, 10**11, places=25),
    st.decimals(0, 10**9, places=6),
    st.decimals(0, 10**6, places=12),
    st.integers(0, 99),
)
def test_no_digit_is_lost(rate: Decimal, seconds: Decimal, factor: Decimal, count: int) -> None:
    """COST-3: as exact as fractions, however many digits the figures have."""
    spec = {
        "billing_mode": "per_second", "rate": str(rate), "times": "n", "multipliers": [{"factor": str(factor)}],
        "surcharges": [{"field": "k", "rate": str(rate)}], "credits": {"price": str(factor), "whole": False},
    }  # fmt: skip
    found = price(rule(spec), {"duration_s": str(seconds), "n": count, "k": count})
    assert isinstance(found, Priced)
    exact = (Fraction(seconds) * Fraction(rate) + count * Fraction(rate)) * Fraction(factor) * count * Fraction(factor)
    assert Fraction(found.amount) == exact

"""The structure of a price rule: which fields a billing mode has. What they come to is cost_quote's to say.

| mode | fields |
|---|---|
| all but per_token | `rate`, `rates: [{when, hours, rate}]`, `table: {by, rates}` |
| per_second, per_image, per_character, per_page | `per`, `round_up_to`, `least_units`, `most_units`, `quantity` |
| per_image | `unit` |
| per_request | `bands: [{field, from, to, price}]`, each the price of the whole result (COST-2) |
| per_token | `<sort>_per_million`, or `tiers` of them; `image_tokens`, `input_image_tokens`, `max_output_tokens` |
| per_second, per_token | `video_tokens`: seconds as tokens, with `rate`, `rates`, `table` per million tokens |
| all | `minimum`, `times`, `surcharges`, `multipliers`, `credits`, `until`, `source`, `source_hash`, `note` |
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from services.routing.domain.price_parts import (
    ZERO,
    check_condition,
    check_image_tokens,
    check_rates,
    check_total,
    check_video_tokens,
    required_amount,
)
from services.routing.domain.spec_reader import SpecReader

ONE, MILLION = Decimal(1), Decimal(1_000_000)
PER_MILLION = tuple(
    f"{sort}_per_million"
    for sort in (
        "input", "cached_input", "cache_write", "cache_write_long", "input_audio", "input_image", "output",
        "reasoning", "output_audio", "output_image",
    )
)  # fmt: skip


class BillingMode(StrEnum):
    """How a price is charged (COST-1)."""

    PER_SECOND = "per_second"
    PER_REQUEST = "per_request"
    PER_IMAGE = "per_image"
    PER_TOKEN = "per_token"
    PER_CHARACTER = "per_character"
    PER_PAGE = "per_page"


class Span(NamedTuple):
    """Lowest and highest figure of a rule, in its own currency, each for one unit of `per`."""

    low: Decimal
    high: Decimal
    per: str


UNITS = {
    "per_second": "second",
    "per_request": "request",
    "per_image": "image",
    "per_token": "million_tokens",
    "per_character": "character",
    "per_page": "page",
}


def check_price(reader: SpecReader, mode: BillingMode) -> None:
    """Report what is wrong with the figures of a rule; the reader is closed by the caller."""
    check_total(reader)
    video = reader.nested("video_tokens") if mode in (BillingMode.PER_SECOND, BillingMode.PER_TOKEN) else None
    if video is not None:
        check_video_tokens(video)
    elif mode is BillingMode.PER_TOKEN:
        _check_tokens(reader)
        return
    priced = check_rates(reader)
    bands = reader.items("bands") if mode is BillingMode.PER_REQUEST else []
    for item in bands:
        _check_band(item)
    if mode is not BillingMode.PER_REQUEST:
        _check_units(reader, mode)
    if not (priced or bands):
        named = "rate, rates, table or bands" if mode is BillingMode.PER_REQUEST else "rate, rates or table"
        reader.fault("rate", f"a {mode} rule needs {named}: a price is never free by omission")


def _check_units(reader: SpecReader, mode: BillingMode) -> None:
    reader.amount("per", ZERO, above_zero=True)
    for name in ("round_up_to", "least_units", "most_units"):
        reader.amount(name, ZERO)
    reader.text("quantity", "")
    if mode is BillingMode.PER_IMAGE:
        reader.word("unit", ("image", "pixel"), "image")


def _check_band(item: SpecReader) -> None:
    item.text("field")
    required_amount(item, "price")
    low, high = item.anything("from"), item.anything("to")
    for name, value in (("from", low), ("to", high)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            item.fault(name, "must be a number")
            return item.close()
    if high < low:
        item.fault("to", f"must not be below from ({low})")
    item.close()


def _check_tokens(reader: SpecReader) -> None:
    check_image_tokens(reader)
    for name in ("input_image_tokens", "max_output_tokens"):
        reader.whole(name, 0)
    tiers = reader.items("tiers")
    for item in tiers:
        _check_per_million(item)
        item.whole("up_to", 0, low=1)
        check_condition(item)
        item.close()
    if not tiers:
        _check_per_million(reader)
    elif any(reader.has(name) for name in PER_MILLION):
        reader.fault("tiers", "stands beside per-million prices; a rule has one or the other")


def _check_per_million(reader: SpecReader) -> None:
    required_amount(reader, "input_per_million")
    for name in PER_MILLION[1:]:
        reader.amount(name, ZERO)


def span_of(spec: Mapping[str, Any], mode: str) -> Span | None:
    """The figures of a checked rule, each for one unit, before surcharges and minimum; None if it has none."""
    figures = [spec.get("rate"), *(item.get("rate") for item in spec.get("rates") or ())]
    figures += [item.get("price") for item in spec.get("bands") or ()]
    figures += _leaves((spec.get("table") or {}).get("rates") or {})
    if mode == "per_token" and "video_tokens" not in spec:
        rows = spec.get("tiers") or [spec]
        figures += [row.get(name) for row in rows for name in ("input_per_million", "output_per_million")]
    amounts = [Decimal(str(figure)) for figure in figures if figure is not None]
    if not amounts:
        return None
    low, high = _unit(spec, mode)
    factors = [Decimal(str(item["factor"])) for item in spec.get("multipliers") or ()]
    for factor in factors:
        low, high = low * min(factor, ONE), high * max(factor, ONE)
    return Span(_scaled(min(amounts), low), _scaled(max(amounts), high), UNITS[mode])


def _unit(spec: Mapping[str, Any], mode: str) -> tuple[Decimal, Decimal]:
    """What one unit of the mode is at least and at most, in units of its rates, in money where the rule has credits."""
    credit = Decimal(str(spec["credits"]["price"])) if spec.get("credits") else ONE
    video = spec.get("video_tokens")
    per = Decimal(str(spec.get("per") or (MILLION if video else ONE)))
    if not video:
        return credit / per, credit / per
    if mode == "per_token":
        return credit * MILLION / per, credit * MILLION / per
    sides = [size.split("x") for by_ratio in video["frames"].values() for size in by_ratio.values()]
    tokens = [Decimal(int(width) * int(height)) * Decimal(str(video["fps"])) / 1024 for width, height in sides]
    return credit * min(tokens) / per, credit * max(tokens) / per


def _leaves(table: Any) -> list[Any]:
    return [leaf for part in table.values() for leaf in _leaves(part)] if isinstance(table, Mapping) else [table]


def _scaled(amount: Decimal, unit: Decimal) -> Decimal:
    """To whole nanos, as all money on the wire."""
    return amount if unit == ONE else round(amount * unit, 9).normalize()

"""The structure of a price rule: which fields a billing mode has. What they come to is cost_quote's to say.

| mode | fields |
|---|---|
| per_second, per_image, per_character, per_page | `rate`, `rates: [{when, rate}]`, `minimum` |
| per_request | the same, and `bands: [{field, from, to, price}]`, each the price of the whole result (COST-2) |
| per_token | `input_per_million`, `cached_input_per_million`, `output_per_million`, or `tiers` of them; `minimum` |
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

from services.routing.domain.spec_reader import SpecReader

ZERO = Decimal(0)
PER_MILLION = ("input_per_million", "cached_input_per_million", "output_per_million")


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
    reader.amount("minimum", ZERO)
    if mode is BillingMode.PER_TOKEN:
        _check_tokens(reader)
        return
    reader.amount("rate", ZERO)
    rates = reader.items("rates")
    for item in rates:
        _required_amount(item, "rate")
        when = item.nested("when")
        if when is None or not when.value:
            item.fault("when", "must name at least one field and its value")
        item.close()
    bands = reader.items("bands") if mode is BillingMode.PER_REQUEST else []
    for item in bands:
        _check_band(item)
    if not (reader.has("rate") or rates or bands):
        named = "rate, rates or bands" if mode is BillingMode.PER_REQUEST else "rate or rates"
        reader.fault("rate", f"a {mode} rule needs {named}: a price is never free by omission")


def _check_band(item: SpecReader) -> None:
    item.text("field")
    _required_amount(item, "price")
    low, high = item.anything("from"), item.anything("to")
    for name, value in (("from", low), ("to", high)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            item.fault(name, "must be a number")
            return item.close()
    if high < low:
        item.fault("to", f"must not be below from ({low})")
    item.close()


def _check_tokens(reader: SpecReader) -> None:
    tiers = reader.items("tiers")
    for item in tiers:
        _check_per_million(item)
        item.whole("up_to", 0, low=1)
        item.close()
    if not tiers:
        _check_per_million(reader)
    elif any(reader.has(name) for name in PER_MILLION):
        reader.fault("tiers", "stands beside per-million prices; a rule has one or the other")


def _check_per_million(reader: SpecReader) -> None:
    _required_amount(reader, "input_per_million")
    for name in PER_MILLION[1:]:
        reader.amount(name, ZERO)


def _required_amount(reader: SpecReader, name: str) -> None:
    if not reader.has(name):
        reader.anything(name)
        reader.fault(name, "is required")
        return
    reader.amount(name, ZERO)


def span_of(spec: Mapping[str, Any], mode: str) -> Span | None:
    """The figures of a checked rule; None if it has none."""
    figures = [spec.get("rate"), *(item.get("rate") for item in spec.get("rates") or ())]
    figures += [item.get("price") for item in spec.get("bands") or ()]
    if mode == "per_token":
        rows = spec.get("tiers") or [spec]
        figures += [row.get(name) for row in rows for name in ("input_per_million", "output_per_million")]
    amounts = [Decimal(str(figure)) for figure in figures if figure is not None]
    return Span(min(amounts), max(amounts), UNITS[mode]) if amounts else None

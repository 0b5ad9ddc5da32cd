"""A kept book read back into rules."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from services.cost_quote.domain.parsing import parse_rule
from services.cost_quote.domain.quoting import PriceBook


def price_book(revision: int, currency: str, fx: Mapping[str, str], specs: Iterable[Mapping[str, Any]]) -> PriceBook:
    """The book with its declarations parsed."""
    rules = {rule.id: rule for rule in map(parse_rule, specs)}
    return PriceBook(revision, currency, {name: Decimal(rate) for name, rate in fx.items()}, rules)

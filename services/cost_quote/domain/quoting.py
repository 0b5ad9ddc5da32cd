"""Quotes for several Supplies in one currency, and the baseline of the guardrails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.cost_quote.domain.pricing import Unpriced, price
from services.cost_quote.domain.rules import BillingMode, PriceRule, parse_rules

DEFAULT_MODES: Mapping[str, BillingMode] = {"video": BillingMode.PER_SECOND}
"""What a request that names no billing mode means (COST-1). Other kinds take the Supply's first rule that fits."""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Every rule in force at one catalogue revision, and units of `currency` per unit of each other currency."""

    revision: int = 0
    currency: str = "CNY"
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    rules: Mapping[str, PriceRule] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One Supply to be priced."""

    supply: str
    rules: tuple[str, ...]
    input: Mapping[str, Any] | None = None
    counts_for_baseline: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """The estimated cost of one request on one Supply under one price-rule version (COST-3)."""

    amount: Money
    original: Money
    rule: str
    version: int
    exchange_rate: Decimal
    revision: int
    kind: str
    billing_mode: BillingMode
    explanation: str


def one_time_book(currency: str, fx: Mapping[str, str], specs: Sequence[Mapping[str, Any]]) -> PriceBook:
    """A book for one question, of no revision. Fault validation_failed names every rule and rate that is none."""
    faults = []
    rates: dict[str, Decimal] = {}
    for name, text in fx.items():
        try:
            rates[name] = Decimal(text)
        except InvalidOperation:
            rates[name] = Decimal(0)
        if not rates[name].is_finite() or rates[name] <= 0:
            faults.append((f"/price_list/exchange_rates/{name}", f"is no decimal above 0: {text!r}"))
    if len(currency) != 3 or not currency.isalpha() or not currency.isupper():
        faults.append(("/price_list/currency", f"must be three capital letters, not {currency!r}"))
    if faults:
        raise Fault.invalid(*faults)
    return PriceBook(0, currency, rates, parse_rules(specs, "/price_list/price_rules"))


def quote_one(
    book: PriceBook, kind: str, mode: BillingMode | None, request: Mapping[str, Any], rules: Sequence[str]
) -> Quote | Unpriced:
    """The quote of the first of a Supply's rules that has the billing mode and prices the request."""
    wanted = mode or DEFAULT_MODES.get(kind)
    if not rules:
        return Unpriced("the supply names no price rule")
    reasons: list[str] = []
    for name in rules:
        rule = book.rules.get(name)
        if rule is None:
            reasons.append(f"no price rule {name!r} is in force")
        elif wanted is not None and rule.billing_mode != wanted:
            reasons.append(f"{name} is {rule.billing_mode}, not {wanted}")
        else:
            found = _quote(book, rule, request)
            if isinstance(found, Quote):
                return found
            reasons.append(found.reason)
    return Unpriced("; ".join(reasons))


def _quote(book: PriceBook, rule: PriceRule, request: Mapping[str, Any]) -> Quote | Unpriced:
    found = price(rule, request)
    if isinstance(found, Unpriced):
        return found
    rate = Decimal(1) if rule.currency == book.currency else book.fx.get(rule.currency)
    if rate is None:
        return Unpriced(f"no exchange rate from {rule.currency} to {book.currency}")
    return Quote(
        amount=Money(book.currency, found.amount * rate).rounded(),
        original=Money(rule.currency, found.amount).rounded(),
        rule=rule.id,
        version=rule.version,
        exchange_rate=rate,
        revision=book.revision,
        kind=found.kind,
        billing_mode=rule.billing_mode,
        explanation=found.explanation,
    )


def quote_candidates(
    book: PriceBook, kind: str, mode: BillingMode | None, request: Mapping[str, Any], candidates: Sequence[Candidate]
) -> tuple[tuple[Quote | Unpriced, ...], Money | None]:
    """(a quote or a reason for each candidate, the lowest quote of those that count for the baseline) (COST-5)."""
    quotes = tuple(
        quote_one(book, kind, mode, request if candidate.input is None else candidate.input, candidate.rules)
        for candidate in candidates
    )
    counted = [
        quote.amount
        for candidate, quote in zip(candidates, quotes, strict=True)
        if candidate.counts_for_baseline and isinstance(quote, Quote)
    ]
    return quotes, min(counted, default=None)

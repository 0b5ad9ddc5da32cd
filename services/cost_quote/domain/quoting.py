"""Quotes for several Supplies in one currency, and the baseline of the guardrails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, NamedTuple

from libs.faults.fault import Fault
from libs.kernel.money import NANO, Money
from services.cost_quote.domain.facts import Asked
from services.cost_quote.domain.parsing import parse_rules
from services.cost_quote.domain.pricing import (
    EXACTLY,
    QUANTITIES,
    Priced,
    Quantity,
    Unpriced,
    price_asked,
    quantity_of,
)
from services.cost_quote.domain.rules import BillingMode, PriceRule
from services.cost_quote.domain.token_rates import TokenRates, rates_of

ONE = Decimal(1)
LARGE = Decimal(10**9)
"""A rate under it in nanos, times a whole quantity under it, is exact."""
MOST = Decimal(10**18)
"""What no quote reaches: it leaves the nanos of every amount within the digits of the arithmetic and of the wire."""
DEFAULT_MODES: Mapping[str, BillingMode] = {"video": BillingMode.PER_SECOND}
"""What a request that names no billing mode means (COST-1). Other kinds take the Supply's first rule that fits."""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """Every rule in force at one catalogue revision, and units of `currency` per unit of each other currency."""

    revision: int = 0
    currency: str = "CNY"
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    rules: Mapping[str, PriceRule] = field(default_factory=dict)
    plain: Mapping[str, tuple[Decimal, str]] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Of rules in the book's own currency whose price is a quantity times one rate: that rate in nanos, so
    that a whole quantity of it needs no rounding, and its text."""
    token_rates: Mapping[str, TokenRates] = field(init=False, compare=False, repr=False, default_factory=dict)
    """Of rules that charge for nothing but tokens: what those cost in the book's currency."""

    def __post_init__(self) -> None:
        own = {name: rule.plain_rate for name, rule in self.rules.items() if rule.currency == self.currency}
        plain = {
            name: (rate.quantize(NANO), str(rate))
            for name, rate in own.items()
            if rate is not None and rate < LARGE and rate == rate.quantize(NANO)
        }
        object.__setattr__(self, "plain", plain)
        rates = {name: rates_of(rule, self.rate_to(rule.currency)) for name, rule in self.rules.items()}
        object.__setattr__(self, "token_rates", {name: found for name, found in rates.items() if found is not None})

    def rate_to(self, currency: str) -> Decimal | None:
        """Units of the book's currency for one of `currency`; None where the table has none."""
        return ONE if currency == self.currency else self.fx.get(currency)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One Supply to be priced."""

    supply: str
    rules: tuple[str, ...]
    input: Mapping[str, Any] | None = None
    counts_for_baseline: bool = False


class Quote(NamedTuple):
    """The estimated cost of one request on one Supply under one price-rule version (COST-3)."""

    value: Decimal
    """In the book's currency, to whole nanos."""
    own_value: Decimal
    """In the rule's currency, to whole nanos."""
    price_rule: PriceRule
    exchange_rate: Decimal
    book: PriceBook
    kind: str
    explanation: str

    @property
    def amount(self) -> Money:
        """What it costs."""
        return Money.unchecked(self.book.currency, self.value)

    @property
    def original(self) -> Money:
        """The same before it was converted."""
        return Money.unchecked(self.price_rule.currency, self.own_value)


_new = tuple.__new__
"""A Quote from its values at once: through the call of its class it takes twice as long, and every Supply has one."""


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


class _Pricing:
    """One request under one book and one billing mode (None = any)."""

    __slots__ = ("asked", "book", "quantity", "wanted")

    def __init__(
        self, book: PriceBook, wanted: BillingMode | None, request: Mapping[str, Any], at: datetime | None
    ) -> None:
        self.book, self.wanted, self.asked = book, wanted, Asked(request, at)
        self.quantity = quantity_of(self.asked, wanted) if wanted is not None and wanted in QUANTITIES else None

    def first(self, names: Sequence[str]) -> Quote | Unpriced:
        """The quote of the first of a Supply's rules that has the billing mode and prices the request."""
        book, wanted, quantity, reasons = self.book, self.wanted, self.quantity, []
        for name in names:
            rule = book.rules.get(name)
            if rule is None:
                reasons.append(f"no price rule {name!r} is in force")
            elif wanted is not None and rule.billing_mode is not wanted:
                reasons.append(f"{name} is {rule.billing_mode}, not {wanted}")
            elif isinstance(quantity, Quantity) and name in book.plain:
                rate, words = book.plain[name]
                value = quantity.amount * rate
                if not quantity.whole:
                    if not value < MOST:
                        reasons.append(_beyond(rule, value, book.currency))
                        continue
                    value = value.quantize(NANO, ROUND_HALF_EVEN)
                return _new(Quote, (value, value, rule, ONE, book, quantity.kind, quantity.words + words))
            else:
                found = self._quote(rule)
                if isinstance(found, Quote):
                    return found
                reasons.append(found.reason)
        return Unpriced("; ".join(reasons) if names else "the supply names no price rule")

    def _quote(self, rule: PriceRule) -> Quote | Unpriced:
        return converted(self.book, rule, price_asked(rule, self.asked))


def converted(book: PriceBook, rule: PriceRule, found: Priced | Unpriced) -> Quote | Unpriced:
    """The price in the book's currency beside the rule's own."""
    if isinstance(found, Unpriced):
        return found
    rate = book.rate_to(rule.currency)
    if rate is None:
        return Unpriced(f"no exchange rate from {rule.currency} to {book.currency}")
    value, own = EXACTLY.multiply(found.amount, rate), found.amount
    if not value < MOST:
        return Unpriced(_beyond(rule, value, book.currency))
    if not own < MOST:
        return Unpriced(_beyond(rule, own, rule.currency))
    value, own = (amount.quantize(NANO, ROUND_HALF_EVEN, EXACTLY) for amount in (value, own))
    return Quote(value, own, rule, rate, book, found.kind, found.explanation)


def _beyond(rule: PriceRule, value: Decimal, currency: str) -> str:
    return f"{value:.3E} {currency} by {rule.id} is more than a quote can hold (under {MOST:.0E})"


def quote_candidates(
    book: PriceBook,
    kind: str,
    mode: BillingMode | None,
    request: Mapping[str, Any],
    candidates: Sequence[Candidate],
    at: datetime | None = None,
) -> tuple[tuple[Quote | Unpriced, ...], Money | None]:
    """(a quote or a reason for each candidate, the lowest quote of those that count for the baseline) (COST-5).

    `at`, in UTC, is when it would be submitted."""
    wanted = mode or DEFAULT_MODES.get(kind)
    common = _Pricing(book, wanted, request, at)
    quotes = tuple(
        [(common if c.input is None else _Pricing(book, wanted, c.input, at)).first(c.rules) for c in candidates]
    )
    counted = [
        quote.value
        for candidate, quote in zip(candidates, quotes, strict=True)
        if candidate.counts_for_baseline and isinstance(quote, Quote)
    ]
    return quotes, Money.unchecked(book.currency, min(counted)) if counted else None

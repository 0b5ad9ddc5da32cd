"""Messages of `QuoteService` to domain values and back."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from libs.rpc.values import money_to_proto, struct_from, struct_to_dict, time_from_proto
from pointsman.common.v1 import usage_pb2
from pointsman.cost_quote.v1 import quote_pb2, quote_service_pb2
from services.cost_quote.domain.pricing import Unpriced
from services.cost_quote.domain.quoting import Candidate, PriceBook, Quote, one_time_book
from services.cost_quote.domain.rules import BillingMode
from services.cost_quote.domain.settling import Usage, Used

_MODES = {mode: quote_pb2.BillingMode.Value(f"BILLING_MODE_{mode.upper()}") for mode in BillingMode}
_KINDS = {"exact": quote_pb2.QUOTE_KIND_EXACT, "ceiling": quote_pb2.QUOTE_KIND_CEILING}


def mode_from_proto(mode: quote_pb2.BillingMode.ValueType) -> BillingMode | None:
    """None where the caller named no mode."""
    name = quote_pb2.BillingMode.Name(mode).removeprefix("BILLING_MODE_").lower()
    return None if name == "unspecified" else BillingMode(name)


def mode_to_proto(mode: BillingMode) -> quote_pb2.BillingMode.ValueType:
    """The enum's value of that mode."""
    return _MODES[mode]


def candidate_from_proto(candidate: quote_pb2.Candidate) -> Candidate:
    """A Supply to be priced."""
    return Candidate(
        supply=candidate.supply_id,
        rules=tuple(candidate.price_rule_ids),
        input=struct_to_dict(candidate.input) if candidate.HasField("input") else None,
        counts_for_baseline=candidate.counts_for_baseline,
    )


def quote_to_proto(supply: str, quote: Quote | Unpriced) -> quote_pb2.CandidateQuote:
    """A candidate's price, or why there is none."""
    if isinstance(quote, Unpriced):
        return quote_pb2.CandidateQuote(supply_id=supply, unpriced_reason=quote.reason)
    return quote_pb2.CandidateQuote(supply_id=supply, quote=_quote(quote))


def usage_price(key: str, price: Quote | Unpriced) -> quote_service_pb2.UsagePrice:
    """What usage costs, or why nobody can say."""
    if isinstance(price, Unpriced):
        return quote_service_pb2.UsagePrice(key=key, unpriced_reason=price.reason)
    return quote_service_pb2.UsagePrice(key=key, price=_quote(price))


def _quote(quote: Quote) -> quote_pb2.Quote:
    rule, amount = quote.price_rule, money_to_proto(quote.amount)
    rates = quote.book.token_rates.get(rule.id)
    return quote_pb2.Quote(
        amount=amount,
        original_amount=amount if rule.currency == quote.book.currency else money_to_proto(quote.original),
        rule_id=rule.id,
        rule_version=rule.version,
        exchange_rate=format(quote.exchange_rate, "f"),
        rate_revision=quote.book.revision,
        kind=_KINDS[quote.kind],
        billing_mode=mode_to_proto(rule.billing_mode),
        explanation=quote.explanation,
        token_rates=None if rates is None else quote_pb2.TokenRates(**rates._asdict()),
    )


_COUNTS = frozenset(item.name for item in fields(Usage) if item.name != "seconds")


def used_from_proto(used: quote_service_pb2.UsageItem, now: datetime) -> Used:
    """One call to be settled; a negative figure is one that was not reported."""
    return Used(
        key=used.key,
        rule=used.rule_id,
        version=used.rule_version,
        request=struct_to_dict(used.input),
        usage=_usage(used.usage),
        revision=used.catalog_revision,
        at=time_from_proto(used.submit_time) or now,
    )


def _usage(message: usage_pb2.Usage) -> Usage:
    told = {item.name: value for item, value in message.ListFields() if item.name in _COUNTS and value >= 0}
    if message.HasField("duration"):
        seconds = Decimal(message.duration.seconds) + Decimal(message.duration.nanos).scaleb(-9)
        if seconds >= 0:
            return Usage(**told, seconds=seconds)
    return Usage(**told)


def book_from_proto(message: quote_service_pb2.PriceList) -> PriceBook:
    """Rules and rates for one question. Fault validation_failed names what is wrong with them."""
    return one_time_book(message.currency, dict(message.exchange_rates), rules_from_proto(message))


def rules_from_proto(
    request: quote_service_pb2.ApplyPriceRulesRequest | quote_service_pb2.PriceList,
) -> list[dict[str, Any]]:
    """Declarations, each with its id and version written in."""
    return [{**struct_to_dict(rule.spec), "id": rule.id, "version": rule.version or 1} for rule in request.price_rules]


def rule_to_proto(spec: Mapping[str, Any]) -> quote_pb2.PriceRule:
    """A declaration as it was told."""
    return quote_pb2.PriceRule(id=spec["id"], version=spec["version"], spec=struct_from(spec))

"""Usage and what it costs, between proto and domain."""

from collections.abc import Sequence
from decimal import Decimal

from google.protobuf.duration_pb2 import Duration

from libs.rpc.values import money_from_proto, struct_from, time_to_proto
from pointsman.common.v1 import usage_pb2
from pointsman.cost_quote.v1 import quote_pb2, quote_service_pb2
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.usage import COUNTS, Usage
from services.routing.ports.prices import UsageItem, UsagePrice

_COUNTS = frozenset(COUNTS)


def usage_to_proto(usage: Usage) -> usage_pb2.Usage:
    """Absent figures stay absent."""
    counts = {name: count for name in COUNTS if (count := getattr(usage, name)) is not None}
    message = usage_pb2.Usage(**counts)
    if usage.seconds is not None:
        nanos = int(usage.seconds.scaleb(9))
        message.duration.CopyFrom(Duration(seconds=nanos // 10**9, nanos=nanos % 10**9))
    return message


def usage_from_proto(message: usage_pb2.Usage) -> Usage:
    """The inverse; a negative figure was not reported."""
    told = {item.name: value for item, value in message.ListFields() if item.name in _COUNTS and value >= 0}
    if message.HasField("duration"):
        seconds = Decimal(message.duration.seconds) + Decimal(message.duration.nanos).scaleb(-9)
        if seconds >= 0:
            return Usage(**told, seconds=seconds)
    return Usage(**told)


def usage_request(items: Sequence[UsageItem]) -> quote_service_pb2.PriceUsageRequest:
    """Everything that is to be settled."""
    return quote_service_pb2.PriceUsageRequest(
        items=[
            quote_service_pb2.UsageItem(
                key=item.key,
                kind=item.kind,
                supply_id=item.supply,
                rule_id=item.rule_id,
                rule_version=item.rule_version,
                input=struct_from(item.facts),
                usage=usage_to_proto(item.usage),
                catalog_revision=item.catalog_revision,
                submit_time=time_to_proto(item.submitted_at),
            )
            for item in items
        ]
    )


def token_rates(message: quote_service_pb2.QuoteCandidatesResponse) -> dict[tuple[str, int], TokenRates]:
    """What tokens cost by the rules that quoted, by (rule, version), where they charge for nothing else."""
    found: dict[tuple[str, int], TokenRates] = {}
    for quote in (item.quote for item in message.quotes):
        if quote.HasField("token_rates"):
            told = quote.token_rates
            rates = TokenRates(told.input, told.cached_input, told.output, told.reasoning)
            found[(quote.rule_id, quote.rule_version)] = rates
    return found


_KINDS = {quote_pb2.QUOTE_KIND_EXACT: "exact", quote_pb2.QUOTE_KIND_CEILING: "ceiling"}


def usage_prices(message: quote_service_pb2.PriceUsageResponse) -> dict[str, UsagePrice]:
    """By key."""
    return {item.key: _price(item) for item in message.prices}


def _price(item: quote_service_pb2.UsagePrice) -> UsagePrice:
    money = money_from_proto(item.price.amount) if item.HasField("price") else None
    if money is None:
        return UsagePrice(None, unpriced_reason=item.unpriced_reason or "no price")
    return UsagePrice(money, _KINDS.get(item.price.kind, "ceiling"), explanation=item.price.explanation)

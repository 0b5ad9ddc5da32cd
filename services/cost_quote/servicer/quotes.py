"""`QuoteService`: decode, call the use-case, encode."""

from typing import Any

from libs.kernel.clock import Clock
from libs.rpc.paging import number_in, page_size
from libs.rpc.values import money_to_proto, struct_to_dict, time_from_proto
from pointsman.cost_quote.v1 import quote_service_pb2 as pb
from pointsman.cost_quote.v1.quote_service_pb2_grpc import QuoteServiceServicer
from services.cost_quote.app.apply_price_rules import apply_price_rules
from services.cost_quote.app.price_usage import price_usage
from services.cost_quote.domain.quoting import quote_candidates
from services.cost_quote.ports import PriceBooks
from services.cost_quote.wire import quotes as wire


class QuoteServicer(QuoteServiceServicer):
    """`pointsman.cost_quote.v1.QuoteService`."""

    def __init__(self, books: PriceBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    async def QuoteCandidates(self, request: pb.QuoteCandidatesRequest, context: Any) -> pb.QuoteCandidatesResponse:
        """Prices one request on several Supplies, and the baseline."""
        book = wire.book_from_proto(request.price_list) if request.HasField("price_list") else None
        book = book or await self._books.current()
        mode = wire.mode_from_proto(request.billing_mode)
        candidates = [wire.candidate_from_proto(candidate) for candidate in request.candidates]
        common = struct_to_dict(request.input)
        at = time_from_proto(request.submit_time) or self._clock.now()
        quotes, baseline = quote_candidates(book, request.kind, mode, common, candidates, at)
        return pb.QuoteCandidatesResponse(
            quotes=[wire.quote_to_proto(item.supply, quote) for item, quote in zip(candidates, quotes, strict=True)],
            baseline=money_to_proto(baseline),
            catalog_revision=book.revision,
        )

    async def PriceUsage(self, request: pb.PriceUsageRequest, context: Any) -> pb.PriceUsageResponse:
        """Prices what calls really used."""
        now = self._clock.now()
        items = [wire.used_from_proto(item, now) for item in request.items]
        prices = await price_usage(self._books, items)
        return pb.PriceUsageResponse(
            prices=[wire.usage_price(item.key, price) for item, price in zip(items, prices, strict=True)]
        )

    async def ListPriceRules(self, request: pb.ListPriceRulesRequest, context: Any) -> pb.ListPriceRulesResponse:
        """The rules in force, in the order of their ids."""
        _, currency, specs = await self._books.specs()
        start = number_in(request.page_token)
        end = start + page_size(request.page_size)
        return pb.ListPriceRulesResponse(
            price_rules=[wire.rule_to_proto(spec) for spec in specs[start:end]],
            next_page_token=str(end) if end < len(specs) else "",
            currency=currency,
        )

    async def ApplyPriceRules(self, request: pb.ApplyPriceRulesRequest, context: Any) -> pb.ApplyPriceRulesResponse:
        """Declares the rules and the rate table of one catalogue revision."""
        revision = await apply_price_rules(
            self._books,
            request.catalog_revision,
            request.currency,
            dict(request.exchange_rates),
            wire.rules_from_proto(request),
        )
        return pb.ApplyPriceRulesResponse(catalog_revision=revision)

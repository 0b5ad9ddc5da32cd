"""`Quotes` and `UsagePrices` over `QuoteService`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.faulting import faulting
from pointsman.cost_quote.v1 import quote_service_pb2 as pb
from pointsman.cost_quote.v1.quote_service_pb2_grpc import QuoteServiceStub
from services.routing.domain.alternative import PriceList
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.catalog import Catalog
from services.routing.domain.decision import QuoteView
from services.routing.ports import Priced
from services.routing.ports.prices import NOT_TOLD_YET, UsageItem, UsagePrice
from services.routing.wire import peers as wire
from services.routing.wire import usage

NOT_TOLD_YET_MS = 500


class RemoteQuotes:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float, pricing_s: float | None = None) -> None:
        """`pricing_s` is the time limit of `price_usage`, where somebody waits for an answer that is there already."""
        self._stub = QuoteServiceStub(channel)
        self._timeout_s = timeout_s
        self._pricing_s = timeout_s if pricing_s is None else pricing_s

    @faulting
    async def quote(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], revision: int
    ) -> Mapping[str, QuoteView]:
        """See the port."""
        return wire.quotes_from_proto(await self._asked(kind, billing_mode, candidates, revision))

    @faulting
    async def quote_each(
        self, kind: str, billing_mode: str, asks: Sequence[Sequence[Priced]], revision: int
    ) -> tuple[Sequence[Mapping[str, QuoteView]], Mapping[tuple[str, int], TokenRates]]:
        """See the port of calls."""
        answer = await self._asked(kind, billing_mode, [item for ask in asks for item in ask], revision)
        return wire.each_from_proto(answer, [len(ask) for ask in asks]), usage.token_rates(answer)

    async def _asked(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], revision: int
    ) -> pb.QuoteCandidatesResponse:
        asked = wire.quote_request(kind, billing_mode, candidates)
        answer = await self._stub.QuoteCandidates(asked, timeout=self._timeout_s)
        if answer.catalog_revision < revision:
            known = f"prices are known for catalogue revision {answer.catalog_revision}, not yet for {revision}"
            told = {NOT_TOLD_YET: str(answer.catalog_revision)}
            raise Fault.of("governance_backend_down", known, retry_after_ms=NOT_TOLD_YET_MS, metadata=told)
        if answer.catalog_revision > revision:
            known = f"prices are known for catalogue revision {answer.catalog_revision}, no more for {revision}"
            raise Fault.of("revision_conflict", known)
        return answer

    @faulting
    async def quote_under(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], prices: PriceList, at: datetime
    ) -> Mapping[str, QuoteView]:
        """See the port."""
        asked = wire.quote_request(kind, billing_mode, candidates, prices, at)
        return wire.quotes_from_proto(await self._stub.QuoteCandidates(asked, timeout=self._timeout_s))

    @faulting
    async def price_usage(self, items: Sequence[UsageItem]) -> Mapping[str, UsagePrice]:
        """See `ports.prices`."""
        answer = await self._stub.PriceUsage(usage.usage_request(items), timeout=self._pricing_s)
        return usage.usage_prices(answer)

    @faulting
    async def apply_prices(self, catalog: Catalog) -> int:
        """See the port."""
        answer = await self._stub.ApplyPriceRules(wire.prices_to_proto(catalog), timeout=self._timeout_s)
        return int(answer.catalog_revision)

"""`QuoteService.PriceUsage` over loopback: reported usage at the rule version that quoted."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from libs.faults.fault import Fault
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.rpc.values import money_from_proto, struct_from
from pointsman.common.v1.usage_pb2 import Usage
from pointsman.cost_quote.v1 import quote_pb2
from pointsman.cost_quote.v1 import quote_service_pb2 as pb
from pointsman.cost_quote.v1.quote_service_pb2_grpc import QuoteServiceStub
from services.cost_quote.app.price_usage import price_usage
from services.cost_quote.compose import assemble
from services.cost_quote.domain.quoting import Quote
from services.cost_quote.domain.settling import Usage as SettledUsage
from services.cost_quote.domain.settling import Used
from services.cost_quote.store.memory import MemoryPriceBooks
from tests.support.worlds import SteeredClock

CALL_S = 10.0
CHAT = {"id": "chat", "currency": "USD", "billing_mode": "per_token", "output_per_million": "8"}


@pytest.fixture
async def service() -> AsyncIterator[Any]:
    """A stub. Revision 1 sold `chat` 1 at 2 USD a million tokens read and 7.00 CNY a USD; revision 2 sells `chat` 2 at
    3 USD and 8.00, and a second at 1.00."""
    books = MemoryPriceBooks()
    second = {"id": "second", "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": "1.00"}
    await books.add(1, "CNY", {"USD": "7.00"}, [{**CHAT, "version": 1, "input_per_million": "2"}])
    await books.add(2, "CNY", {"USD": "8.00"}, [{**CHAT, "version": 2, "input_per_million": "3"}, second])
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(books, SteeredClock()).registrations:
        server.add(add_to_server)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        yield QuoteServiceStub(channels.to("cost_quote"))
    await server.close()


def item(key: str, rule: str, version: int, usage: Usage, **fields: Any) -> pb.UsageItem:
    """One call to be settled."""
    return pb.UsageItem(
        key=key, kind="chat", supply_id="a/x", rule_id=rule, rule_version=version, usage=usage, **fields
    )


def told(price: pb.UsagePrice) -> str:
    """The amount in the book's currency, or the reason why there is none."""
    if not price.HasField("price"):
        return price.unpriced_reason
    money = money_from_proto(price.price.amount)
    assert money is not None
    quote = price.price
    return f"{money.to_json()['amount']} at {quote.exchange_rate} by {quote.rule_id} {quote.rule_version}"


async def test_usage_is_priced_by_the_version_that_quoted(service: Any) -> None:
    """COST-3: a retired version settles what it quoted, at the exchange rate of its own catalogue revision; answers
    come in the order of the items."""
    million = Usage(input_tokens=1_000_000, output_tokens=500_000)
    five = Usage(duration=Duration(seconds=5, nanos=40_000_000))
    items = [
        item("b", "chat", 2, million),
        item("a", "chat", 1, million),
        item("c", "chat", 1, million, catalog_revision=1),
        item("d", "second", 1, five, catalog_revision=2),
    ]
    answer = await service.PriceUsage(pb.PriceUsageRequest(items=items), timeout=CALL_S)
    assert [price.key for price in answer.prices] == ["b", "a", "c", "d"]
    assert [told(price) for price in answer.prices] == [
        "56.00 at 8.00 by chat 2",
        "42.00 at 7.00 by chat 1",
        "42.00 at 7.00 by chat 1",
        "5.04 at 1 by second 1",
    ]
    assert {price.price.kind for price in answer.prices} == {quote_pb2.QUOTE_KIND_EXACT}


async def test_the_revision_that_quoted_names_the_rate() -> None:
    """COST-3: one version in two revisions is settled at the exchange rate of the one that quoted; without a word of
    it, at the newest."""
    books = MemoryPriceBooks()
    rule = {**CHAT, "version": 1, "input_per_million": "2"}
    await books.add(1, "CNY", {"USD": "7.00"}, [rule])
    await books.add(2, "CNY", {"USD": "8.00"}, [rule])
    usage = SettledUsage(input_tokens=1_000_000, output_tokens=0)
    asked = [Used(str(revision), "chat", 1, {}, usage, revision) for revision in (0, 1, 2, 9)]
    prices = await price_usage(books, asked)
    assert [str(price.exchange_rate) for price in prices if isinstance(price, Quote)] == [
        "8.00",
        "7.00",
        "8.00",
        "8.00",
    ]


async def test_what_nobody_can_price_says_why_and_holds_up_no_other(service: Any) -> None:
    """COST-4: an unknown version and an absent figure are reasons, never zero."""
    items = [
        item("a", "chat", 3, Usage(input_tokens=1)),
        item("b", "chat", 2, Usage(output_tokens=1)),
        item("c", "chat", 2, Usage(input_tokens=1)),
        item("d", "second", 1, Usage()),
        item("e", "second", 1, Usage(), input=struct_from({"duration_s": 2})),
    ]
    answer = await service.PriceUsage(pb.PriceUsageRequest(items=items), timeout=CALL_S)
    assert [told(price) for price in answer.prices] == [
        "no version 3 of a price rule 'chat' was ever in force",
        "the provider reported no input_tokens, by which chat charges",
        "the provider reported no output_tokens, by which chat charges",
        "per_second needs duration_s, a number from 0 up, of at most 18 digits",
        "2.00 at 1 by second 1",
    ]


async def test_a_question_has_at_most_a_thousand_items(service: Any) -> None:
    """COST-3: more are refused with the remedy."""
    many = [item("a", "chat", 2, Usage())] * 1_001
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await service.PriceUsage(pb.PriceUsageRequest(items=many), timeout=CALL_S)
    assert [error.pointer for error in caught.value.errors] == ["/items"]

"""`QuoteService` over loopback: quotes under the rules in force, and under rules that a question brings along."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.faulting import faults_from_rpc
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from libs.rpc.values import money_from_proto, struct_from
from pointsman.cost_quote.v1 import quote_pb2, quote_service_pb2
from pointsman.cost_quote.v1.quote_service_pb2_grpc import QuoteServiceStub
from services.cost_quote.compose import assemble
from services.cost_quote.store.memory import MemoryPriceBooks
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.wire.usage import token_rates
from tests.support.worlds import SteeredClock

CALL_S = 10.0


@pytest.fixture
async def service() -> AsyncIterator[Any]:
    """A stub, with one rule in force: 1.00 a second, revision 4."""
    books = MemoryPriceBooks()
    spec = {"id": "second", "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": "1.00"}
    await books.add(4, "CNY", {"USD": "7.00"}, [spec])
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    for _, add_to_server in assemble(books, SteeredClock()).registrations:
        server.add(add_to_server)
    await server.start()
    async with Channels(registry=registry, caller="routing") as channels:
        yield QuoteServiceStub(channels.to("cost_quote"))
    await server.close()


def question(**fields: Any) -> quote_service_pb2.QuoteCandidatesRequest:
    """Five seconds on one Supply that is sold by the rule `second`."""
    return quote_service_pb2.QuoteCandidatesRequest(
        kind="video",
        input=struct_from({"duration_s": 5}),
        candidates=[quote_pb2.Candidate(supply_id="a/x", price_rule_ids=["second"])],
        **fields,
    )


def prices(rate: str = "0.20", currency: str = "USD", usd: str = "8.00") -> quote_service_pb2.PriceList:
    """One rule and one rate."""
    spec = struct_from({"currency": currency, "billing_mode": "per_second", "rate": rate})
    rule = quote_pb2.PriceRule(id="second", version=9, spec=spec)
    return quote_service_pb2.PriceList(currency="CNY", exchange_rates={"USD": usd}, price_rules=[rule])


async def test_a_question_may_bring_its_own_prices(service: Any) -> None:
    """SEL-23, COST-3: rules and rates of the question price it, by the same arithmetic; the answer is of no revision,
    and the next question is priced by what is in force."""
    answer = await service.QuoteCandidates(question(price_list=prices()), timeout=CALL_S)
    (quoted,) = answer.quotes
    assert str(money_from_proto(quoted.quote.amount).rounded().amount.normalize()) == "8"
    assert (quoted.quote.rule_version, quoted.quote.exchange_rate) == (9, "8.00")
    assert (answer.catalog_revision, quoted.quote.rate_revision) == (0, 0)
    answer = await service.QuoteCandidates(question(), timeout=CALL_S)
    assert (answer.catalog_revision, answer.quotes[0].quote.amount.units) == (4, 5)


@pytest.mark.parametrize(("hour", "amount"), [(12, 5), (23, 2.5)])
async def test_the_hour_is_that_of_the_submission(service: Any, hour: int, amount: float) -> None:
    """COST-3, SEL-23: hours are read from the time of submission that a question names, not from the clock."""
    cheap = {"factor": "0.5", "hours": {"from": "22:00", "to": "06:00"}}
    spec = {"currency": "CNY", "billing_mode": "per_second", "rate": "1.00", "multipliers": [cheap]}
    rule = quote_pb2.PriceRule(id="second", version=1, spec=struct_from(spec))
    asked = question(price_list=quote_service_pb2.PriceList(currency="CNY", price_rules=[rule]))
    asked.submit_time.FromDatetime(datetime(2026, 11, 30, hour, tzinfo=UTC))
    [quoted] = (await service.QuoteCandidates(asked, timeout=CALL_S)).quotes
    assert money_from_proto(quoted.quote.amount) == Money("CNY", Decimal(str(amount)))
    assert quoted.quote.kind == quote_pb2.QUOTE_KIND_EXACT


async def test_a_list_that_lacks_a_rule_prices_nothing_by_it(service: Any) -> None:
    """COST-4: what the question's own list does not hold has no price, though a rule of that id is in force."""
    empty = quote_service_pb2.PriceList(currency="CNY")
    answer = await service.QuoteCandidates(question(price_list=empty), timeout=CALL_S)
    assert answer.quotes[0].unpriced_reason == "no price rule 'second' is in force"


@pytest.mark.parametrize(
    "wrong, pointer",
    [
        (prices(rate="much"), "/price_list/price_rules/0/spec/rate"),
        (prices(usd="0"), "/price_list/exchange_rates/USD"),
        (quote_service_pb2.PriceList(currency="yuan"), "/price_list/currency"),
    ],
)
async def test_wrong_prices_are_named(service: Any, wrong: quote_service_pb2.PriceList, pointer: str) -> None:
    """COST-3: a rule, a rate or a currency that is none is refused by its place."""
    with pytest.raises(Fault) as caught:
        async with faults_from_rpc():
            await service.QuoteCandidates(question(price_list=wrong), timeout=CALL_S)
    assert [error.pointer for error in caught.value.errors] == [pointer]


async def test_a_quote_carries_the_rates_of_tokens(service: Any) -> None:
    """COST-3: what a million tokens cost in the catalogue's currency comes with the quote of a rule that charges for
    nothing else, and with no other; routing takes it as it was told."""
    chat = {"currency": "USD", "billing_mode": "per_token", "input_per_million": "0.15", "output_per_million": "0.60"}
    specs = {"chat": chat, "least": chat | {"minimum": "0.01"}}
    rules = [quote_pb2.PriceRule(id=name, version=3, spec=struct_from(spec)) for name, spec in specs.items()]
    asked = quote_service_pb2.QuoteCandidatesRequest(
        kind="chat",
        input=struct_from({"input_tokens": 64, "max_output_tokens": 16}),
        candidates=[quote_pb2.Candidate(supply_id=name, price_rule_ids=[name]) for name in specs],
        price_list=quote_service_pb2.PriceList(currency="CNY", exchange_rates={"USD": "7.00"}, price_rules=rules),
    )
    answer = await service.QuoteCandidates(asked, timeout=CALL_S)
    assert token_rates(answer) == {("chat", 3): TokenRates(1_050_000_000, 1_050_000_000, 4_200_000_000, 4_200_000_000)}

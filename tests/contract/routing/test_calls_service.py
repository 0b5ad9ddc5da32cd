"""Synchronous calls as their callers see them: RoutingService over loopback, with scripted peers behind it."""

from collections.abc import AsyncIterator

import pytest

from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.feedback import Pace
from services.routing.domain.usage import Usage
from services.routing.ports.calls import Report
from tests.unit.routing.call_stage import HELLO, CallStage, Then, call_stage, serving


@pytest.fixture
async def play() -> AsyncIterator[CallStage]:
    """Two Supplies behind one model."""
    async with serving(call_stage()) as made:
        yield made


async def test_a_call_is_answered_and_on_record(play: CallStage):
    """SYN-1, SYN-11: the answer, one provider call, usage, cost and times; the record says the same, and why."""
    answer = await play.invoke(session_id="s1", parent_call_id="c0")
    assert b"Good morning to you." in answer.output
    assert play.provider.sent() == 1
    told = await play.call()
    told_without = type(told)()
    told_without.CopyFrom(told)
    del told_without.selections[:]
    assert answer.call == told_without
    assert (told.session_id, told.parent_call_id, told.kind, told.tenant) == ("s1", "c0", "chat", "t")
    attempt = told.attempts[0]
    assert (attempt.state, attempt.supply_id, attempt.provider_request_id) == ("succeeded", "a/talk", "req-1")
    assert (attempt.usage.input_tokens, attempt.usage.output_tokens) == (10, 6)
    assert attempt.reserved_tokens > 100
    assert (told.cost.units, told.cost.nanos) == (0, 160_000_000)
    assert [item.outcome for item in told.selections] == ["reserved"]
    assert '"inputs"' in told.selections[0].record_json


async def test_what_a_try_held_is_given_back(play: CallStage):
    """CAP-6, SYN-7: the slot goes back with the tokens that were used, and health hears of the success."""
    await play.invoke()
    await play.settled()
    assert not play.capacity.live()
    (feedback,) = play.capacity.told.values()
    assert (feedback.pace, feedback.used_tokens) == (Pace.SUCCEEDED, 16)
    assert list(play.health.outcomes.values()) == [None]


async def test_a_call_is_made_once(play: CallStage):
    """ATT-5: the same call_id is no second provider call."""
    await play.invoke()
    assert (await play.refused()).code == "already_exists"
    assert play.provider.sent() == 1


async def test_the_input_travels_as_it_came(play: CallStage):
    """The bytes of the caller are the bytes that are sent."""
    await play.invoke(given=HELLO)
    (_, outgoing) = play.provider.calls[0]
    assert outgoing.input == b'{"messages": [{"role": "user", "content": "Good morning."}], "max_tokens": 100}'


async def test_tokens_are_priced_by_the_rates_of_their_quote(play: CallStage):
    """COST-3, PRF-1: where the quote told what tokens cost, that is the price, and nobody is asked once more; where the
    provider's word leaves something open, cost_quote is."""
    play.quotes.rates = {("tokens", 1): TokenRates(2_000_000_000, 2_000_000_000, 500_000, 500_000)}
    await play.invoke()
    assert (await play.call()).attempts[0].cost.nanos == 20_003
    assert play.quotes.priced == []
    play.script("a/talk", Then(report=Report(Usage(input_tokens=10))))
    await play.invoke("c2")
    assert [item.usage.input_tokens for item in play.quotes.priced] == [10]

"""Synchronous calls as their callers see them: RoutingService over loopback, with scripted peers behind it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.faulting import faults_from_rpc
from pointsman.routing.v1 import call_list_pb2, call_pb2
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


async def listed(play: CallStage, **asked: Any) -> call_list_pb2.ListCallsResponse:
    """A page of the calls that have ended."""
    async with faults_from_rpc():
        found: call_list_pb2.ListCallsResponse = await play.stub.ListCalls(
            call_list_pb2.ListCallsRequest(**asked), timeout=5
        )
    return found


async def test_calls_that_have_ended_are_listed(play: CallStage):
    """SYN-11 AUTH-1: as their records say, without the rounds, a page after the other; under way is no end."""
    for name in ("c1", "c2"):
        await play.invoke(name)
        await play.call(name)
    assert (await listed(play, tenant="nobody")).calls == []
    page = await listed(play, tenant="t", page_size=1)
    (newest,) = page.calls
    assert (newest.id, newest.tenant, newest.model, len(newest.attempts), len(newest.selections)) == (
        "c2", "t", "talk", 1, 0
    )  # fmt: skip
    rest = await listed(play, page_token=page.next_page_token, states=[call_pb2.CALL_STATE_SUCCEEDED])
    assert ([call.id for call in rest.calls], rest.next_page_token) == (["c1"], "")
    for wrong in ({"states": [call_pb2.CALL_STATE_RUNNING]}, {"page_size": -1}):
        with pytest.raises(Fault) as caught:
            await listed(play, **wrong)
        assert caught.value.code == "validation_failed"

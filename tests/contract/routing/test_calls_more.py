"""Cache, batches, selectors, turns and orphans of synchronous calls, through RoutingService over loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from pointsman.routing.v1 import call_pb2
from services.routing.app.calls.end_orphans import EndOrphans, forget_calls
from services.routing.domain.calls.call import CallState, TryState
from services.routing.domain.catalog import Binding, Catalog, DegradationRule, Kind, Limits, Tier
from services.routing.domain.decision import HealthView
from services.routing.domain.selection_record import replays
from services.routing.domain.usage import Usage
from services.routing.ports.alerts import AlertQuery
from services.routing.ports.calls import Report
from tests.unit.routing.call_stage import (
    HELLO,
    CallStage,
    Then,
    call_stage,
    chat_catalog,
    chat_supply,
    chunk,
    request,
    serving,
)

BROKEN = Fault.of("provider_error", "the provider answered 500")


@asynccontextmanager
async def house(offers: Catalog | None = None, **settings: Any) -> AsyncIterator[CallStage]:
    """A process with that on offer."""
    async with serving(call_stage(offers, **settings)) as made:
        yield made


# --- The response cache -----------------------------------------------------------------------------------------------


async def test_a_cached_answer_costs_nothing_and_says_so():
    """SYN-10: the second call of one tenant is answered without a provider, at no cost, and is marked."""
    async with house(chat_catalog(cache={"ttl_s": 60})) as play:
        first = await play.invoke("c1")
        await play.settled()
        again = {"temperature": None, **dict(reversed(HELLO.items())), "user": "somebody"}
        second = await play.invoke("c2", given=again)
        assert second.output == first.output
        assert (first.call.cached, second.call.cached) == (False, True)
        assert play.provider.sent() == 1
        told = await play.call("c2")
        assert (told.cached, len(told.attempts), told.cost.units, told.cost.nanos) == (True, 0, 0, 0)
        assert told.supply_id == ""


async def test_a_cached_answer_is_for_the_same_question_of_the_same_tenant():
    """SYN-10: another tenant, another question, a caller who says no, a time that is over: each asks the provider."""
    async with house(chat_catalog(cache={"ttl_s": 60})) as play:
        await play.invoke("c1")
        await play.settled()
        others: list[dict[str, Any]] = [{"tenant": "u"}, {"given": HELLO | {"max_tokens": 9}}, {"skip_cache": True}]
        for number, changes in enumerate(others, 2):
            await play.invoke(f"c{number}", **changes)
            assert play.provider.sent() == number
        play.clock.advance(61)
        await play.invoke("c9")
        assert play.provider.sent() == 5


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_only_whole_answers_are_kept(reason: str):
    """SYN-10: one that was cut off or filtered is asked for again."""
    async with house(chat_catalog(cache={"ttl_s": 60})) as play:
        play.script("a/talk", Then(report=Report(Usage(input_tokens=1, output_tokens=1), reason)))
        for number in range(2):
            await play.invoke(f"c{number}")
            await play.settled()
        assert play.provider.sent() == 2


async def test_a_cached_stream_comes_piece_by_piece():
    """SYN-10: a stream is given again as it came; a whole answer is another question."""
    async with house(chat_catalog(cache={"ttl_s": 60})) as play:
        play.script("a/talk", Then(chunks=(chunk("Good "), chunk("day."))))
        first = await play.stream("c1")
        await play.settled()
        second = await play.stream("c2")
        assert second.pieces == first.pieces
        assert second.call is not None
        assert second.call.cached
        assert play.provider.sent() == 1
        await play.invoke("c3")
        assert play.provider.sent() == 2


async def test_a_model_without_a_cache_keeps_nothing():
    """SYN-10: opt-in."""
    async with house() as play:
        for number in range(2):
            await play.invoke(f"c{number}")
            await play.settled()
        assert play.provider.sent() == 2


# --- Embeddings -------------------------------------------------------------------------------------------------------


def embedder(name: str, **changes: Any) -> Any:
    """A Supply of vectors that takes three texts at once."""
    return replace(chat_supply(name, kind=Kind.EMBEDDING, capabilities={"max_batch": 3}), **changes)


def embed(play: CallStage) -> None:
    """Every Supply answers with one number for each text, its length, in the wrong order."""

    def answer(outgoing: Any) -> dict[str, Any]:
        texts = json.loads(outgoing.input)["input"]
        rows = [{"object": "embedding", "index": at, "embedding": [len(text) + 0.5]} for at, text in enumerate(texts)]
        return {
            "object": "list",
            "data": rows[::-1],
            "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)},
        }

    play.provider.answer = answer


async def test_texts_are_split_and_put_together_in_order():
    """SYN-11: as many calls as the Supply needs, all at one Supply, each a try with its usage; one answer in order."""
    async with house(chat_catalog(embedder("a/talk"), embedder("b/talk"))) as play:
        embed(play)
        texts = ["x" * length for length in range(1, 9)]
        answer = await play.invoke(given={"input": texts})
        output = json.loads(answer.output)
        assert [row["index"] for row in output["data"]] == list(range(8))
        assert [row["embedding"] for row in output["data"]] == [[length + 0.5] for length in range(1, 9)]
        assert output["usage"]["prompt_tokens"] == 8
        assert [name for name, _ in play.provider.calls] == ["a/talk"] * 3
        told = await play.call()
        assert [item.state for item in told.attempts] == ["succeeded"] * 3
        assert told.usage.input_tokens == 30
        assert told.attempts[0].reserved_tokens > told.attempts[2].reserved_tokens


async def test_a_failed_batch_is_done_again_elsewhere():
    """SYN-11, SYN-1: with the same upstream model the finished batches stay."""
    async with house(chat_catalog(embedder("a/talk"), embedder("b/talk"))) as play:
        embed(play)
        play.script("a/talk", Then(), Then(BROKEN))
        answer = await play.invoke(given={"input": list("abcdef")})
        assert len(json.loads(answer.output)["data"]) == 6
        assert [name for name, _ in play.provider.calls] == ["a/talk", "a/talk", "b/talk"]


async def test_vectors_of_two_models_are_never_mixed():
    """SYN-11: where the other Supply has another upstream model, everything is made anew there."""
    async with house(chat_catalog(embedder("a/talk"), embedder("b/talk", upstream_model="other"))) as play:
        embed(play)
        play.script("a/talk", Then(), Then(BROKEN))
        await play.invoke(given={"input": list("abcdef")})
        assert [name for name, _ in play.provider.calls] == ["a/talk", "a/talk", "b/talk", "b/talk"]


async def test_one_text_travels_as_it_came():
    """SYN-11: what fits into one call is sent and answered untouched."""
    async with house(chat_catalog(embedder("a/talk"))) as play:
        play.script("a/talk", Then(output={"data": [{"index": 0, "embedding": "base64"}]}))
        answer = await play.invoke(given={"input": "abc"})
        assert json.loads(answer.output) == {"data": [{"index": 0, "embedding": "base64"}]}
        assert play.provider.calls[0][1].input == b'{"input": "abc"}'


async def test_an_answer_with_a_vector_too_few_is_no_answer():
    """SYN-11: a batch that does not answer every text ends the call instead of shifting the others."""
    async with house(chat_catalog(embedder("a/talk"))) as play:
        play.script("a/talk", Then(output={"data": [{"index": 0, "embedding": [1]}]}))
        assert (await play.refused(given={"input": list("abcd")})).code == "malformed_reply"


# --- Selectors and turns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"), [("health_aware", ["a/talk"] * 4), ("round_robin", ["a/talk", "b/talk"] * 2)]
)
async def test_a_selector_chooses_among_the_survivors(selector: str, expected: list[str]):
    """SYN-9, SEL-22: the policy's order, or each in its turn; what was chosen replays byte for byte."""
    async with house(chat_catalog(sync={"selector": selector})) as play:
        for number in range(4):
            await play.invoke(f"c{number}")
        assert [name for name, _ in play.provider.calls] == expected
        for number in range(4):
            assert all(replays(item.record_json) for item in (await play.call(f"c{number}")).selections)


async def test_a_selector_brings_nobody_back():
    """SYN-9, SEL-8: whose circuit is open has no turn."""
    async with house(chat_catalog(sync={"selector": "round_robin"})) as play:
        play.health.supplies = {"a/talk": HealthView("circuit_open")}
        for number in range(3):
            await play.invoke(f"c{number}")
        assert play.provider.sent("a/talk") == 0


async def at_once(play: CallStage, count: int, **changes: Any) -> list[Any]:
    """So many calls in one turn of the loop."""
    asked = [request(f"c{number}", HELLO, **changes) for number in range(count)]
    work = asyncio.gather(*(play.stub.Invoke(item, timeout=100) for item in asked), return_exceptions=True)
    return await play.while_time_passes(asyncio.ensure_future(work))


async def test_the_fewest_in_flight_come_first():
    """SYN-9: calls of one turn spread, each seeing those before it."""
    async with house(chat_catalog(sync={"selector": "least_inflight"})) as play:
        await at_once(play, 6)
        assert (play.provider.sent("a/talk"), play.provider.sent("b/talk")) == (3, 3)


async def test_calls_of_a_turn_share_what_they_ask():
    """PRF-1, SEL-10: many calls at once are a few looks and one question for prices; equal questions are asked once."""
    async with house(chat_catalog(chat_supply("a/talk", limits=Limits()))) as play:
        looks: list[str] = []

        async def count(place: str) -> None:
            looks.append(place)

        play.health.effect = play.capacity.effect = count
        await at_once(play, 40)
        assert play.provider.sent() == 40
        assert looks.count("health.snapshot") <= 3
        assert looks.count("capacity.snapshot") <= 3
        assert play.quotes.questions == [1]


async def test_a_turn_does_not_overbook():
    """SEL-13, SYN-2: five slots and eight calls at once: five are served, three are told to come back."""
    async with house(chat_catalog(chat_supply("a/talk"))) as play:
        play.script("a/talk", Then(after_s=5.0))
        answers = await at_once(play, 8)
        assert sum(not isinstance(item, BaseException) for item in answers) == 5
        assert play.capacity.highest["a/talk"] == 5


# --- Degradation ------------------------------------------------------------------------------------------------------


async def test_a_degraded_answer_says_so_and_the_input_is_changed():
    """TIER-3, TIER-6: the rule changes what is sent, and the call names it."""
    rule = DegradationRule("less", 1, "full", "less", drop_inputs=("tools",), verified=True, published=True)
    plain = chat_supply("b/talk", capabilities={"features": []})
    offers = chat_catalog(chat_supply("a/talk"), plain, profile="full")
    bindings = (Binding("a/talk", Tier.EXACT), Binding("b/talk", Tier.DEGRADED, rule="less"))
    offers = replace(
        offers,
        rules={"less": rule},
        models={"talk": replace(offers.models["talk"], bindings=bindings)},
    )
    async with house(offers) as play:
        play.health.supplies = {"a/talk": HealthView("circuit_open")}
        given = HELLO | {"tools": [{"type": "function", "function": {"name": "f"}}]}
        answer = await play.invoke(given=given)
        (_, outgoing) = play.provider.calls[0]
        assert json.loads(outgoing.input) == HELLO
        changed = answer.call.degradation
        assert (changed.rule_id, changed.actual_profile, list(changed.dropped_inputs)) == ("less", "less", ["tools"])
        assert (await play.refused("c2", given=given, degradation="strict")).code == "circuit_open_all"
        await play.settled()
        told = (await play.desk.alerts.alerts(AlertQuery()))[0]
        assert sorted((item.kind, item.count) for item in told) == [
            ("degradation_in_use", 1),
            ("exact_supply_unavailable", 1),
        ]


async def test_what_may_have_been_paid_counts_against_the_limit():
    """COST-6, COST-12, SYN-2: an unknown try counts with its quote, so that the next one would go beyond the limit. The
    call ends as what happened: the caller's request is not at fault."""
    offers = chat_catalog()
    policy = replace(offers.policies["quick"], absolute_cost_limit=Decimal("1.5"))
    async with house(replace(offers, policies={"quick": policy})) as play:
        play.script("a/talk", Then(Fault.of("submission_unknown", "reset")))
        fault = await play.refused()
        assert (fault.code, fault.retryable) == ("retry_exhausted", False)
        assert "spent 1.00 + 1.00 > 1.50" in fault.message
        assert play.provider.sent() == 1


# --- Orphans ----------------------------------------------------------------------------------------------------------


async def test_a_call_of_a_dead_process_is_closed_as_unknown():
    """ERR-1a, COST-12: long past its timeout it ends with a possible charge and an alert; nothing is sent again."""
    async with house() as play:
        play.script("a/talk", Then(hangs=True))
        asked = asyncio.ensure_future(play.stub.Invoke(request("c1", HELLO), timeout=1000))
        for _ in range(200):
            await asyncio.sleep(0)
        running = await play.store.get("c1")
        assert running[0].state is CallState.RUNNING
        other = call_stage()
        await other.store.intend(next(iter(play.store.intents["c1"].values())))
        other.clock.advance(3600)
        ends = EndOrphans(other.desk)
        while await ends():
            pass
        closed, _ = await other.store.get("c1")
        assert (closed.state, closed.tries[-1].state) == (CallState.FAILED, TryState.UNKNOWN)
        assert closed.tries[-1].possible_charge
        (alert,) = (await other.desk.alerts.alerts(AlertQuery()))[0]
        assert (alert.kind, alert.subject) == ("cost_anomaly", closed.tries[-1].id)
        assert other.provider.sent() == 0
        assert not await ends()
        asked.cancel()


async def test_a_call_that_lives_is_nobodys_orphan():
    """ATT-7: whoever looks while it is under way, and after it has ended, leaves it alone."""
    async with house() as play:
        play.script("a/talk", Then(after_s=25.0))
        ends = EndOrphans(play.desk)
        work = asyncio.ensure_future(play.invoke())
        while not work.done():
            while await ends():
                pass
            await asyncio.sleep(0)
        play.clock.advance(3600)
        while await ends():
            pass
        assert (await play.call()).state == call_pb2.CALL_STATE_SUCCEEDED
        assert (await play.desk.alerts.alerts(AlertQuery()))[0] == ()


async def test_calls_are_kept_for_their_time():
    """SYN-11: a record stays as long as it was said, and then goes."""
    async with house(call_retention_s=3600.0) as play:
        await play.invoke()
        await play.settled()
        play.clock.advance(3599)
        await forget_calls(play.desk)
        assert await play.call()
        play.clock.advance(2)
        await forget_calls(play.desk)
        with pytest.raises(Fault) as caught:
            await play.call()
        assert caught.value.code == "not_found"

"""How calls switch, wait and end, through RoutingService over loopback (SYN-2 to SYN-6, ERR-1a).

Every call read back has its account checked (`CallStage.call`): wall = productive + stall + overhead.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from libs.faults.fault import Fault
from services.routing.domain.catalog import Admin, Binding, Kind, Tier, Timeouts
from services.routing.domain.decision import HealthView
from services.routing.domain.feedback import Pace
from services.routing.ports import Refused
from tests.unit.routing.call_stage import CallStage, Then, call_stage, chat_catalog, chat_supply, seconds, serving

BUSY = Fault.of("rate_limited", "429: too many requests")
BROKEN = Fault.of("provider_error", "the provider answered 500")
CUT = Fault.of("submission_unknown", "the connection was reset")


@asynccontextmanager
async def house(*supplies: Any, timeouts: Timeouts | None = None, **sync: Any) -> AsyncIterator[CallStage]:
    """A process with that policy."""
    async with serving(call_stage(chat_catalog(*supplies, sync=sync, timeouts=timeouts))) as made:
        yield made


def told_ms(fault: Fault) -> int:
    """Its Retry-After."""
    assert fault.retry_after_ms is not None
    return fault.retry_after_ms


def sources(fault: Fault) -> list[str]:
    """The Supplies it names."""
    return [error.pointer for error in fault.errors]


# --- 429 --------------------------------------------------------------------------------------------------------------


async def test_a_429_moves_on_at_once():
    """SYN-4: under fail_fast another candidate serves; the refused try is none, and health counts it as capacity."""
    async with house() as play:
        play.script("a/talk", Then(BUSY))
        await play.invoke()
        told = await play.call()
        assert [(item.supply_id, item.state) for item in told.attempts] == [
            ("a/talk", "congested"),
            ("b/talk", "succeeded"),
        ]
        assert seconds(told.times) == (0.0, 0.0)
        paces = sorted(item.pace for item in play.capacity.told.values())
        assert paces == [Pace.CONGESTED, Pace.SUCCEEDED]
        assert [failure.code for failure in play.health.outcomes.values() if failure] == ["rate_limited"]


async def test_all_429_end_with_the_shortest_retry_after():
    """SYN-2, SYN-4: each is asked once, and the end is 429 at once, with every source and its reason."""
    async with house() as play:
        play.script("a/talk", Then(BUSY.replaced(retry_after_ms=7000)))
        play.script("b/talk", Then(BUSY.replaced(retry_after_ms=2500)))
        fault = await play.refused()
        assert (fault.code, fault.category.value, told_ms(fault)) == ("quota_full", "capacity", 2500)
        assert sources(fault) == ["a/talk", "b/talk"]
        assert [play.provider.sent(name) for name in ("a/talk", "b/talk")] == [1, 1]
        told = await play.call()
        assert [item.state for item in told.attempts] == ["congested", "congested"]
        assert told.failure.code == "quota_full"


async def test_a_429_held_for_the_whole_timeout_cannot_hang_the_caller():
    """SYN-3: all of it is stall time, it consumes no attempt, and the call ends with its own timeout."""
    async with house(chat_supply("a/talk"), quota_full="wait", total_timeout_s=60) as play:
        play.script("a/talk", Then(BUSY, after_s=28.0))
        fault = await play.refused()
        assert fault.code == "quota_full"
        told = await play.call()
        assert play.provider.sent() == len(told.attempts) == 2
        productive, stall = seconds(told.times)
        assert productive == 0.0
        assert 56.0 < stall <= 60.0
        assert [item.state for item in told.attempts] == ["congested"] * 2


async def test_waiting_for_room_consumes_no_attempt():
    """SYN-4: under wait the call goes by Retry-After, as often as it takes, and is served in the end."""
    async with house(chat_supply("a/talk"), quota_full="wait", max_attempts=1, total_timeout_s=100) as play:
        play.script("a/talk", *[Then(BUSY.replaced(retry_after_ms=10_000))] * 5, Then())
        await play.invoke()
        told = await play.call()
        assert [item.state for item in told.attempts] == ["congested"] * 5 + ["succeeded"]
        assert seconds(told.times) == (0.0, 50.0)


async def test_our_own_full_capacity_ends_at_once_or_waits_for_a_release():
    """SYN-2, SEL-17, CAP-10: with fail_fast a refusal names the gate; with wait the next release is enough."""
    full = Refused("supply a/talk", "tokens", 1000, 990, None)
    async with house(chat_supply("a/talk")) as play:
        play.capacity.refusals = [full]
        fault = await play.refused()
        assert (fault.code, play.provider.sent()) == ("quota_full", 0)
        assert "supply a/talk tokens 990 of 1000" in fault.message
        assert told_ms(fault) > 0
        assert [item.outcome.partition(":")[0] for item in (await play.call()).selections] == ["refused", "waiting"]
    async with house(chat_supply("a/talk"), quota_full="wait") as play:
        play.capacity.refusals = [full]
        await play.invoke()
        assert (await play.call()).times.stall.seconds > 0


# --- Real tries -------------------------------------------------------------------------------------------------------


async def test_a_failed_supply_is_left_for_another():
    """SYN-1: the switch is transparent, and both tries are on record with what they cost."""
    async with house() as play:
        play.script("a/talk", Then(BROKEN, after_s=1.0))
        await play.invoke()
        told = await play.call()
        assert [item.state for item in told.attempts] == ["failed", "succeeded"]
        assert (told.supply_id, seconds(told.times)) == ("b/talk", (1.0, 0.0))
        assert [item.selection_round for item in told.attempts] == [1, 2]


async def test_the_retry_budget_ends_a_call():
    """SYN-3, SYN-6: three real tries on one Supply, backoff between them as stall time, then 502 with the reasons."""
    async with house(chat_supply("a/talk"), max_attempts=3, backoff_base_s=4) as play:
        play.script("a/talk", Then(BROKEN, after_s=1.0))
        fault = await play.refused()
        assert fault.code == "retry_exhausted"
        assert "3 of 3 tries failed: a/talk: the provider answered 500" in fault.message
        assert play.provider.sent() == 3
        productive, stall = seconds((await play.call()).times)
        assert productive == 3.0
        assert 6.0 <= stall <= 13.0


@pytest.mark.parametrize("code", ["content_rejected", "invalid_request"])
async def test_content_and_request_are_never_tried_again(code: str):
    """SYN-2, HLT-5: one provider call, the provider's own fault, no health touched."""
    async with house() as play:
        play.script("a/talk", Then(Fault.of(code, "no")))
        assert (await play.refused()).code == code
        assert play.provider.sent() == 1
        await play.settled()
        assert play.health.outcomes == {}


async def test_an_assembly_fault_is_nobodys_outage():
    """CAT-6, SYN-6: what is not configured surfaces at once, is tried nowhere else and counts against nobody."""
    async with house() as play:
        play.script("a/talk", Then(Fault.of("source_not_configured", "secret env:KEY is not set")))
        assert (await play.refused()).code == "source_not_configured"
        await play.settled()
        assert (play.provider.sent(), play.health.outcomes) == (1, {})


async def test_a_dead_account_is_left_with_all_its_supplies():
    """SYN-1: a failure of the Channel holds every Supply of it; the next try goes over another account."""
    async with house(chat_supply("a/talk"), chat_supply("a/talk2"), chat_supply("b/talk")) as play:
        play.script("a/talk", Then(Fault.of("key_invalid", "401")))
        await play.invoke()
        assert [name for name, _ in play.provider.calls] == ["a/talk", "b/talk"]


@pytest.mark.parametrize("quota_full", ["fail_fast", "wait"])
@pytest.mark.parametrize("code", ["key_invalid", "account_forbidden", "balance_exhausted", "model_unavailable"])
async def test_an_account_that_no_wait_mends_is_not_waited_for(code: str, quota_full: str):
    """SYN-2, SYN-6: with nobody else to serve, the call ends in the moment of the refusal, says who refused and why,
    and names no time at which to come back, for nobody knows one."""
    async with house(chat_supply("a/talk"), chat_supply("a/talk2"), quota_full=quota_full) as play:
        if code == "model_unavailable":
            play.script("a/talk2", Then(Fault.of(code, "refused")))
        play.script("a/talk", Then(Fault.of(code, "refused"), after_s=1.0))
        fault = await play.refused()
        assert (fault.code, fault.retry_after_ms) == ("retry_exhausted", None)
        assert "tries failed and waiting mends nothing: a/talk: refused" in fault.message
        assert sources(fault) == ["a/talk", "a/talk2"]
        assert seconds((await play.call()).times) == (1.0, 0.0)


async def test_a_dead_account_does_not_keep_others_from_being_waited_for():
    """SYN-4: another Supply that has merely failed is tried again after its backoff, the dead one is not."""
    async with house(max_attempts=4) as play:
        play.script("a/talk", Then(Fault.of("key_invalid", "401")))
        play.script("b/talk", Then(BROKEN), Then())
        await play.invoke()
        assert [name for name, _ in play.provider.calls] == ["a/talk", "b/talk", "b/talk"]


async def test_what_ends_names_only_supplies_of_the_model():
    """SYN-6: a dead account holds Supplies of other models too; the caller is told of those of its own."""
    own = (Binding("a/talk", Tier.EXACT),)
    offers = chat_catalog(chat_supply("a/talk"), chat_supply("a/other"), bindings=own, sync={"max_attempts": 1})
    async with serving(call_stage(offers)) as play:
        play.script("a/talk", Then(Fault.of("key_invalid", "401")))
        assert sources(await play.refused()) == ["a/talk"]


async def test_one_slow_timeout_does_not_eat_the_retries():
    """SYN-3, SYN-5: a try that times out after the stall window or longer burns an attempt, not patience."""
    async with house(timeouts=Timeouts(submit_s=20), stall_window_s=15, quota_full="wait") as play:
        play.script("a/talk", Then(hangs=True))
        await play.invoke()
        told = await play.call()
        assert [item.state for item in told.attempts] == ["unknown", "succeeded"]
        assert seconds(told.times) == (20.0, 0.0)
        assert play.provider.sent() == 2


async def test_the_total_timeout_covers_every_provider_call():
    """SYN-1: two slow Supplies within one timeout; a try that our own time cuts off is no failure of its Supply."""
    async with house(timeouts=Timeouts(submit_s=40), total_timeout_s=60) as play:
        for name in ("a/talk", "b/talk"):
            play.script(name, Then(hangs=True))
        fault = await play.refused()
        assert fault.code == "retry_exhausted"
        told = await play.call()
        assert told.times.wall.ToSeconds() == 60
        assert [item.latency.ToSeconds() for item in told.attempts] == [40, 20]
        assert [failure.code for failure in play.health.outcomes.values() if failure] == ["provider_timeout"]


async def test_a_callers_own_timeout_is_shorter_or_refused():
    """SYN-1, CAP-3: `timeout` bounds the call; one that no slot could be held for is refused."""
    async with house() as play:
        play.script("a/talk", Then(hangs=True))
        await play.refused(timeout_s=3)
        assert (await play.call()).times.wall.ToSeconds() == 3
        fault = await play.refused("c2", timeout_s=500)
        assert fault.errors[0].pointer == "/options/timeout"


# --- Unknown ----------------------------------------------------------------------------------------------------------


async def test_an_unknown_chat_may_be_tried_again_with_a_possible_charge():
    """ERR-1a: the retry is permitted, and what may have been charged is on record."""
    async with house() as play:
        play.script("a/talk", Then(CUT))
        await play.invoke()
        first = (await play.call()).attempts[0]
        assert (first.state, first.possible_charge, first.HasField("cost")) == ("unknown", True, False)


@pytest.mark.parametrize(("retry_unknown", "sent"), [(False, 1), (True, 2)])
async def test_an_unknown_image_is_not_paid_twice_behind_our_back(retry_unknown: bool, sent: int):
    """ERR-1a: image and speech only with `sync.retry_unknown`; else the caller is told that nobody knows."""
    images = [replace(chat_supply(name), kind=Kind.IMAGE) for name in ("a/talk", "b/talk")]
    async with house(*images, retry_unknown=retry_unknown) as play:
        play.script("a/talk", Then(CUT))
        if retry_unknown:
            await play.invoke(given={"prompt": "a boat"})
        else:
            assert (await play.refused(given={"prompt": "a boat"})).code == "submission_unknown"
        assert play.provider.sent() == sent
        assert (await play.call()).attempts[0].possible_charge


# --- Ends -------------------------------------------------------------------------------------------------------------


async def test_a_call_that_only_waits_stalls():
    """SYN-5, SYN-6: its stall time has reached the window and nothing in the scope has succeeded within it."""
    slots = chat_supply("a/talk")
    async with house(slots, quota_full="wait", stall_window_s=20, total_timeout_s=100) as play:
        play.script("a/talk", Then(BUSY))
        fault = await play.refused()
        assert fault.code == "stalled"
        assert "no success in the model's scope yet" in fault.message
        productive, stall = seconds((await play.call()).times)
        assert (productive, 20.0 <= stall < 21.0) == (0.0, True)


async def test_tries_that_burn_no_attempt_stall_a_call_like_waiting():
    """SYN-3, SYN-5: providers that hold a request and then answer 429 cannot hang a caller beyond the window."""
    async with house(quota_full="wait", stall_window_s=5, total_timeout_s=100) as play:
        for name in ("a/talk", "b/talk"):
            play.script(name, *[Then(BUSY, after_s=3.0)] * 40)
        assert (await play.refused()).code == "stalled"
        productive, stall = seconds((await play.call()).times)
        assert (productive, 5.0 <= stall < 8.0) == (0.0, True)
        assert play.provider.sent() == 2


async def test_a_success_anywhere_in_the_scope_forbids_the_verdict():
    """SYN-5: another call of the model, in another process too, has succeeded within the window: it waits on."""
    async with house(chat_supply("a/talk"), quota_full="wait", stall_window_s=20, total_timeout_s=50) as play:
        play.script("a/talk", Then())
        await play.invoke("c0")
        ended, _ = await play.store.get("c0")
        elsewhere = structs.replace(ended, id="c00", finished_at=play.clock.now() + timedelta(seconds=15))
        await play.store.end(elsewhere, ())
        play.desk.memory.successes.clear()
        play.script("a/talk", Then(BUSY))
        fault = await play.refused()
        assert fault.code == "stalled"
        assert 35.0 <= seconds((await play.call()).times)[1] < 36.5


async def test_open_circuits_end_a_call_at_once():
    """SYN-6: every circuit is open: 503, when the first one is tried again, and no provider call."""
    async with house() as play:
        until = play.clock.now() + timedelta(seconds=30)
        play.health.supplies = {
            "a/talk": HealthView("circuit_open", cooldown_until=until),
            "b/talk": HealthView("circuit_open", cooldown_until=until + timedelta(seconds=30)),
        }
        fault = await play.refused()
        assert (fault.code, told_ms(fault)) == ("circuit_open_all", 30_000)
        assert "a/talk: SEL-8 supply a/talk circuit_open" in fault.message
        assert play.provider.sent() == 0
        assert (await play.call()).state == 3


async def test_who_is_well_and_passed_over_is_named():
    """SYN-6: that the only other supply is too dear, or disabled, is what somebody can do something about."""
    shut = chat_supply("b/talk", admin=Admin.DISABLED)
    async with house(chat_supply("a/talk"), shut) as play:
        play.health.supplies = {"a/talk": HealthView("circuit_open", cooldown_until=play.clock.now())}
        fault = await play.refused()
        assert fault.code == "circuit_open_all"
        assert "passed over: b/talk: " in fault.message


async def test_a_breakers_cooldown_is_waited_for_under_wait():
    """SYN-3: the wait for the breaker is stall time, and the call is served when it is over."""
    async with house(chat_supply("a/talk"), quota_full="wait") as play:
        until = play.clock.now() + timedelta(seconds=10)
        play.health.supplies = {"a/talk": HealthView("circuit_open", cooldown_until=until)}
        play.health.heals = {"a/talk": until}
        await play.invoke()
        productive, stall = seconds((await play.call()).times)
        assert productive == 0.0
        assert 10.0 <= stall < 13.0


async def test_nobody_in_use_is_no_source():
    """SYN-6: an operator has taken all out of use: 503, each with its step."""
    out = replace(chat_supply("a/talk"), admin=Admin.DISABLED)
    async with house(out) as play:
        fault = await play.refused()
        assert fault.code == "no_sources"
        assert [(error.pointer, error.reason) for error in fault.errors] == [
            ("a/talk", "SEL-4 supply a/talk is disabled")
        ]


async def test_what_no_supply_can_do_is_the_callers_fault():
    """SYN-12, SEL-5: a feature that nobody has is refused with the reason, not as an outage."""
    plain = replace(chat_supply("a/talk"), capabilities={"features": ["json_schema"]})
    async with house(plain) as play:
        fault = await play.refused(
            given={"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]}
        )
        assert fault.code == "validation_failed"
        assert "needs feature tools" in fault.message


@pytest.mark.parametrize("part", ["capacity", "health", "quotes"])
async def test_a_governance_that_does_not_answer_admits_nobody(part: str):
    """CAP-12, SYN-7: fails closed, with a time to come back, and no provider call."""
    async with house() as play:
        getattr(play, part).away = Fault.of("peer_unavailable", f"{part} cannot be reached")
        fault = await play.refused()
        assert (fault.code, told_ms(fault), play.provider.sent()) == ("governance_backend_down", 5000, 0)


async def test_bookkeeping_that_fails_after_a_success_hurts_nobody():
    """SYN-7: health, capacity and prices go away while the provider works: the answer is given all the same."""
    async with house() as play:
        play.script("a/talk", Then(after_s=5.0))
        gone = Fault.of("peer_unavailable", "gone")

        async def strike(place: str) -> None:
            if place in ("capacity.release", "health.report"):
                raise gone

        play.capacity.effect = play.health.effect = strike
        play.quotes.pricing_away = gone
        answer = await play.invoke()
        assert answer.output
        told = await play.call()
        assert told.attempts[0].state == "succeeded"
        assert told.attempts[0].cost.units == 1


async def test_not_even_a_bug_destroys_what_was_paid_for():
    """SYN-7: pricing breaks instead of failing properly: the answer is given, and its quote stands for its cost."""
    async with house() as play:
        play.quotes.pricing_away = RuntimeError("a bug")
        assert (await play.invoke()).output
        assert (await play.call()).attempts[0].cost.units == 1

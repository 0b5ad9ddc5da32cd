"""What calls share: looks that serve several turns, and what is done after them, put together (PRF-1, SYN-7)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from libs.faults.fault import Fault
from libs.kernel.deadlines import current_deadline, deadline_at
from libs.kernel.money import Money
from services.routing.app.calls.afterwards import Afterwards
from services.routing.app.calls.invoke import invoke
from services.routing.app.calls.open_call import Asked
from services.routing.app.calls.watchdog import LOOK_S, Watch, Watchdog
from services.routing.app.desk import Errands
from services.routing.domain.catalog import Limits
from services.routing.domain.decision import HealthView
from services.routing.domain.usage import Usage
from services.routing.ports.alerts import AlertQuery
from services.routing.ports.calls import Report
from services.routing.ports.prices import NOT_TOLD_YET
from tests.support.worlds import SteeredClock
from tests.unit.routing.call_stage import CallStage, Then, call_stage, chat_catalog, chat_supply, serving

TEXT = b'{"messages": [{"role": "user", "content": "Hello."}]}'


async def called(play: CallStage, call_id: str) -> str:
    """Who served that call."""
    _, call = await invoke(play.desk, Asked(call_id, "t", "talk", TEXT))
    return call.supply


def counting(play: CallStage) -> list[str]:
    """What is asked of health and capacity from now on."""
    asked: list[str] = []

    async def count(place: str) -> None:
        asked.append(place)

    play.health.effect = play.capacity.effect = count
    return asked


async def test_a_look_serves_the_turns_that_follow_at_once():
    """PRF-1: within its time no other look is taken, and each decision counts those before it."""
    play = call_stage(look_fresh_s=0.05)
    asked = counting(play)
    served = []
    for number in range(4):
        served.append(await called(play, f"c{number}"))
        play.clock.advance(0.009)
    assert served == ["a/talk", "b/talk"] * 2  # by more free capacity, since nothing else tells them apart
    assert asked.count("health.snapshot") == 1
    play.clock.advance(0.05)
    await called(play, "c9")
    assert asked.count("health.snapshot") == 2


async def test_nobody_is_turned_away_over_an_old_look():
    """SYN-2, SEL-9: the look says that all slots are taken; a new one shows that they have been given back since."""
    play = call_stage(chat_catalog(chat_supply("a/talk")), look_fresh_s=1.0)
    for number in range(20):
        assert await called(play, f"c{number}") == "a/talk"
        await play.desk.errands.done()
    assert play.provider.sent() == 20


async def test_a_new_look_shows_what_has_changed():
    """SEL-8: once a look is over its time the next decision knows of the circuit that opened meanwhile."""
    play = call_stage(look_fresh_s=1.0)
    assert await called(play, "c1") == "a/talk"
    play.health.supplies = {"a/talk": HealthView("circuit_open")}
    play.clock.advance(1.1)
    assert await called(play, "c2") == "b/talk"


def noting(done: list[int]) -> Callable[[int], Awaitable[None]]:
    """Work that notes its number."""

    async def note(number: int) -> None:
        done.append(number)

    return note


async def some_turns() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_done_afterwards_goes_in_one_go():
    """SYN-7, PRF-1: nothing is done before the window is over, then everything is, in its order."""
    clock, errands, done, hurry = SteeredClock(), Errands(), [], [False]
    later = Afterwards(errands, clock, 0.02, lambda: hurry[0])
    for number in range(3):
        later.begin(partial(noting(done), number))
    await some_turns()
    assert done == []
    hurry[0] = True
    later.begin(partial(noting(done), 9))
    await some_turns()
    assert done == [9]
    clock.advance(0.02)
    await some_turns()
    assert done == [9, 0, 1, 2]
    await errands.done()


async def test_a_slot_that_somebody_waits_for_goes_at_once():
    """CAP-10: while a call waits for room, a release does not wait for its window."""
    play = call_stage(chat_catalog(chat_supply("a/talk"), sync={"quota_full": "wait"}), settle_window_s=1.0)
    play.script("a/talk", Then(after_s=5.0))
    work = [asyncio.ensure_future(called(play, f"c{number}")) for number in range(6)]
    await some_turns()
    assert play.provider.sent() == 5
    for _ in range(5):
        play.clock.advance(1.0)
        await some_turns()
    assert play.provider.sent() == 6
    for _ in range(6):
        play.clock.advance(1.0)
        await some_turns()
    assert await asyncio.gather(*work) == ["a/talk"] * 6
    play.clock.advance(1000)
    await play.desk.errands.done()


async def test_nobody_is_turned_away_for_a_slot_whose_call_has_ended():
    """SYN-2, SYN-7: a caller who asks one after the other finds its own slot free, however long releases gather."""
    only = replace(chat_supply("a/talk"), limits=Limits(concurrency=1))
    play = call_stage(chat_catalog(only, sync={"quota_full": "fail_fast"}), settle_window_s=1.0)
    for number in range(5):
        assert await asyncio.wait_for(called(play, f"c{number}"), 5) == "a/talk"
    assert play.provider.sent() == 5
    play.clock.advance(2000)
    await play.desk.errands.done()


async def test_the_watchdog_tells_its_own_limit_from_a_cancellation():
    """SYN-8: a limit is a TimeoutError; a caller who leaves is a cancellation, also when both come at once."""
    clock = SteeredClock()
    watch = Watch(clock)

    async def watched(first: float, then: float | None = None) -> str:
        async with Watchdog(watch, first) as dog:
            if then is not None:
                dog.rest()
                await clock.sleep(50)
                dog.push(then)
            await asyncio.Event().wait()
        return "never"

    for first, then, barks_at in ((3.0, None, 3.0), (3.0, 1.0, 51.0)):
        task = asyncio.ensure_future(watched(first, then))
        began = clock.monotonic()
        while not task.done():
            await some_turns()
            if not task.done():
                clock.advance(0.5)
        with pytest.raises(TimeoutError):
            await task
        assert clock.monotonic() - began == barks_at
    leaving = asyncio.ensure_future(watched(0.0))
    await some_turns()
    clock.advance(10_000)
    await some_turns()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_one_task_watches_every_limit():
    """SYN-8, PRF-1: limits that come in any order end each at its own moment, watched by one task, which stays
    for those that follow at once and goes with its first look that finds none."""
    clock = SteeredClock()
    watch, before = Watch(clock), len(asyncio.all_tasks())
    ended: dict[float, float] = {}

    async def watched(seconds: float) -> None:
        began = clock.monotonic()
        with pytest.raises(TimeoutError):
            async with Watchdog(watch, seconds):
                await asyncio.Event().wait()
        ended[seconds] = clock.monotonic() - began

    limits = (9.0, 3.0, 12.5, 3.5, 1.0)
    work = [asyncio.ensure_future(watched(seconds)) for seconds in limits]
    await some_turns()
    assert len(asyncio.all_tasks()) == before + len(limits) + 1
    while len(ended) < len(limits):
        clock.advance(0.5)
        await some_turns()
    await asyncio.gather(*work)
    await some_turns()
    assert ended == {seconds: seconds for seconds in limits}
    watching = asyncio.all_tasks()
    for _ in range(3):
        async with Watchdog(watch, 60.0):
            await some_turns()
    assert asyncio.all_tasks() == watching
    clock.advance(LOOK_S)
    await some_turns()
    assert len(asyncio.all_tasks()) == before


async def test_a_lease_that_nobody_came_for_is_given_back():
    """CAP-8: the caller leaves while its place is being reserved; the slot does not wait for its time to live."""
    play = call_stage()
    gate = asyncio.Event()

    async def hold(place: str) -> None:
        if place == "capacity.reserved":
            await gate.wait()

    play.capacity.effect = hold
    work = asyncio.ensure_future(called(play, "c1"))
    await some_turns()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    gate.set()
    await some_turns()
    await play.desk.errands.done()
    assert not play.capacity.live()
    assert play.provider.sent() == 0


async def test_a_store_that_is_away_admits_nobody():
    """CAP-12, ATT-5: without a durable intent nothing is sent, and what was reserved is given back."""
    play = call_stage()

    async def away(intent: object) -> None:
        raise Fault.of("governance_backend_down", "PostgreSQL does not answer")

    play.store.intend = away
    with pytest.raises(Fault) as caught:
        await called(play, "c1")
    assert caught.value.code == "governance_backend_down"
    await play.desk.errands.done()
    assert (play.provider.sent(), play.capacity.live()) == (0, {})


async def test_a_call_that_costs_more_than_its_ceiling_is_told():
    """OPS-6: the quote of 1 was the most; usage that costs more, or a provider that charges more, is a drift."""
    dear = Usage(input_tokens=90, output_tokens=11)
    for report, words in (
        (Report(dear), "1.01 CNY is booked, more than the ceiling of 1.00 CNY"),
        (Report(Usage(), reported_cost=Money("CNY", Decimal("1.2"))), "1.20 CNY is booked, more than the ceiling"),
        (Report(Usage(input_tokens=90, output_tokens=10)), ""),
        (Report(), ""),
    ):
        play = call_stage(chat_catalog(chat_supply("a/talk")))
        play.script("a/talk", Then(report=report))
        await called(play, "c1")
        await some_turns()
        play.clock.advance(1)  # what is done afterwards is gathered for a moment
        await play.desk.errands.done()
        alerts, _ = await play.desk.alerts.alerts(AlertQuery(kind="cost_drift"))
        assert [(alert.subject, alert.link) for alert in alerts] == ([("a/talk", "/v1/calls/c1")] if words else [])
        assert all(words in alert.message for alert in alerts)


async def test_nothing_that_is_shared_runs_under_one_callers_deadline():
    """OPS-4, SYN-7: a turn is everybody's, and what follows a call outlives its caller; only its own provider call and
    intent are under its deadline."""
    play = call_stage()
    seen: dict[str, float | None] = {}

    async def note(place: str) -> None:
        seen[place] = current_deadline()

    play.health.effect = play.capacity.effect = note
    with deadline_at(1e9):
        await called(play, "c1")
    await play.desk.errands.done()
    assert seen.keys() >= {
        "health.snapshot",
        "capacity.snapshot",
        "capacity.reserve",
        "capacity.release",
        "health.report",
    }
    assert set(seen.values()) == {None}


async def test_prices_that_come_a_moment_later_are_waited_for():
    """SYN-6: a catalogue that was applied just now turns no call away for want of its prices, unless they do not
    come."""
    async with serving(call_stage()) as play:
        behind = Fault.of("governance_backend_down", "prices come later", metadata={NOT_TOLD_YET: "0"})
        play.quotes.faults = [behind] * 3
        await play.invoke("c1")
        play.clock.advance(60)  # prices are asked for anew each minute
        play.quotes.faults = [behind] * 1000
        assert (await play.refused("c2")).code == "governance_backend_down"
        assert play.provider.sent() == 1

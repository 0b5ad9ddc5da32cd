"""Calls that share a Hold: nothing unpaid, nothing booked twice, nothing forgotten (COST-9, COST-11, COST-12), over the
real ledger in memory. What is sent in these tests is judged by `paid` besides."""

import asyncio
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.cost_quote.domain.budgets import Amounts, ChangeAsk, Entry
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.call_holds import FEWEST, SERVES_S, CallHolds
from services.routing.app.calls.end_orphans import EndOrphans
from services.routing.app.settle_holds import SettleHolds
from services.routing.domain.calls.call import Call
from services.routing.domain.catalog import Spend, Tenant
from services.routing.domain.rounds import SelectionRound
from services.routing.store.calls_memory import MemoryCalls
from tests.unit.routing.call_stage import (
    HELLO,
    CallStage,
    Then,
    call_stage,
    chat_catalog,
    chat_supply,
    request,
    serving,
)

BROKEN = Fault.of("provider_error", "the provider answered 500")
MONTH = "tenant:t:month:2026-01-01:CNY"
HANGS = Then(hangs=True)


async def entries(play: CallStage) -> Sequence[Entry]:
    """Of the month's budget."""
    return await play.tasks.ledger.budgets.entries(MONTH, 0, 100)


async def told(play: CallStage) -> list[tuple[str, int]]:
    """(what moved, attempts spent) of each entry."""
    return [(entry.kind.value, entry.spent.attempts) for entry in await entries(play)]


async def figures(play: CallStage) -> tuple[float, float]:
    """(spent, held) of the month, in yuan."""
    [(_, spent, held)] = await play.tasks.ledger.figures()
    return spent, held


async def record(play: CallStage, name: str) -> Call:
    """As it stands."""
    found = await play.store.get(name)
    assert found is not None
    return found[0]


async def cost_of(play: CallStage, *names: str) -> float:
    """What those calls have cost by their records."""
    return float(sum([(await record(play, name)).cost.amount for name in names], Decimal(0)))


async def invoke(play: CallStage, *names: str) -> None:
    """One call after the other, each settled."""
    for name in names:
        await play.invoke(name)
        await play.settled()


async def close(play: CallStage) -> None:
    """As a process that stops."""
    await play.desk.holds.settle_shared(everything=True)


def walk(play: CallStage) -> SettleHolds:
    """Of this process."""
    return SettleHolds(play.tasks.desk, play.desk)


def another(play: CallStage, desk: CallDesk) -> SettleHolds:
    """Of a process that shares the ledger and the records of that desk, and nothing else."""
    return SettleHolds(play.tasks.desk, replace(desk, holds=CallHolds(desk.funds, desk.world)))


async def swept(desk: CallDesk) -> None:
    """Calls whose process died are ended."""
    sweep = EndOrphans(desk)
    while await sweep():
        pass


async def left_hanging(play: CallStage, name: str = "c9") -> "asyncio.Task[object]":
    """A call whose provider has it and says nothing."""
    play.script("a/talk", HANGS)
    work = asyncio.ensure_future(play._invoke(request(name, HELLO)))
    await reached(play)
    return work


async def reached(play: CallStage) -> None:
    """Until its provider has the call."""
    for _ in range(50):
        await asyncio.sleep(0)
    assert play.provider.calls


async def test_calls_share_a_hold_that_is_settled_by_what_they_cost() -> None:
    """COST-9: three calls, one of them with two tries: one Hold before the first, one settlement after its time."""
    async with serving(call_stage()) as play:
        play.script("a/talk", Then(fault=BROKEN), Then())
        await invoke(play, "c1", "c2", "c3")
        assert await told(play) == [("hold", 0)]
        play.clock.advance(SERVES_S)
        await walk(play)()
        assert await told(play) == [("hold", 0), ("settle", 4)]
        assert await figures(play) == (await cost_of(play, "c1", "c2", "c3"), 0)
        assert (await entries(play))[-1].reason == "3 calls"


async def test_a_call_under_way_keeps_its_hold() -> None:
    """COST-9, COST-12: the Hold's time is over, and a call has not ended: it is not settled, by nobody, and new calls
    share another."""
    async with serving(call_stage()) as play:
        work = await left_hanging(play)
        play.clock.advance(SERVES_S)
        await walk(play)()
        assert await told(play) == [("hold", 0)]
        play.script("a/talk", Then())
        await invoke(play, "c2")
        assert [kind for kind, _ in await told(play)] == ["hold", "hold"]
        work.cancel()


@pytest.mark.parametrize(("served", "in_time"), [(FEWEST, True), (FEWEST, False), (FEWEST // 2 + 1, False)])
async def test_the_next_hold_has_room_for_twice_as_many(served: int, in_time: bool) -> None:
    """COST-9: a Hold without room, or whose time is over, is closed and another taken; each call is paid by one."""
    async with serving(call_stage()) as play:
        names = [f"c{number}" for number in range(served + 1)]
        await invoke(play, *names[:-1])
        if not in_time:
            play.clock.advance(SERVES_S)
            await walk(play)()
        await invoke(play, names[-1])
        first, second = [entry for entry in await entries(play) if entry.kind.value == "hold"]
        assert second.held.cost * FEWEST == 2 * served * first.held.cost > 0
        assert [(await record(play, name)).hold for name in names] == [first.hold_id] * served + [second.hold_id]
        await close(play)
        assert await figures(play) == (await cost_of(play, *names), 0)


async def test_many_at_once_wait_for_one_question() -> None:
    """COST-9: what is opened for one is there for all that came with it."""
    async with serving(call_stage()) as play:
        play.script("a/talk", Then())
        await asyncio.gather(*(play.invoke(f"c{number}") for number in range(5)))
        await play.settled()
        assert await told(play) == [("hold", 0)]
        assert play.provider.sent() == 5


async def test_a_caller_who_leaves_before_there_is_a_place_keeps_no_hold_open() -> None:
    """COST-9, CAP-8: its call has ended and is on record when a place for it is found: it draws on nothing then, or no
    end would ever come that gives it back, and what all others have cost would not be booked."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        play.clock.advance(1)  # the next one takes a new look
        gate = asyncio.Event()

        async def wait(place: str) -> None:
            if place == "capacity.snapshot":
                await gate.wait()

        play.capacity.effect = wait
        work = asyncio.ensure_future(play._invoke(request("c2", HELLO)))
        for step in range(200):
            await asyncio.sleep(0)
            if step == 100:
                work.cancel()
                play.clock.advance(1)
        await asyncio.gather(work, return_exceptions=True)
        assert (await record(play, "c2")).tries == ()
        gate.set()
        await play.settled()
        assert not play.capacity.live()
        play.clock.advance(SERVES_S)
        await walk(play)()
        assert await told(play) == [("hold", 0), ("settle", 1)]
        assert await figures(play) == (await cost_of(play, "c1"), 0)


@pytest.mark.parametrize("limited", [False, True])
async def test_a_caller_who_leaves_while_a_hold_is_looked_for_takes_none(limited: bool) -> None:
    """COST-9, CAP-8: neither its share of what is opened by then, nor one of its own where money is limited."""
    async with serving(call_stage()) as play:
        await play.tasks.ledger.declare(MONTH, "t", "CNY", Money("CNY", Decimal(1000)) if limited else None, "a month")
        play.tasks.ledger.gate.clear()
        work = asyncio.ensure_future(play._invoke(request("c1", HELLO)))
        for step in range(200):
            await asyncio.sleep(0)
            if step == 100:
                work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert (await record(play, "c1")).tries == ()
        play.tasks.ledger.gate.set()
        await play.settled()
        play.clock.advance(SERVES_S)
        await walk(play)()
        kinds = [kind for kind, _ in await told(play) if kind != "limit"]
        assert kinds == ([] if limited else ["hold", "release"])


async def test_a_budget_that_an_operator_limits_is_not_shared() -> None:
    """COST-9, COST-10: each call takes its own, so that what others may need stands in nobody's way; what does not fit
    is refused, with nothing sent."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        await close(play)
        spent, _ = await figures(play)
        await play.tasks.ledger.budgets.change(ChangeAsk(MONTH, "a ceiling", Amounts(1000 * 10**9)))
        await invoke(play, "c2")
        assert (await record(play, "c2")).hold == "call:c2"
        lower = Amounts(round((spent + 1) * 1e9))
        await play.tasks.ledger.budgets.change(ChangeAsk(MONTH, "a lower one", lower))
        sent = play.provider.sent()
        assert (await play.refused("c3")).code == "budget_exhausted"
        assert play.provider.sent() == sent


async def test_a_tenant_with_a_quota_shares_nothing() -> None:
    """COST-9: nor does anybody where every call is to have a Hold of its own."""
    quota = replace(chat_catalog(), tenants={"t": Tenant("t", 1, spend=Spend(Decimal(100), "month"))})
    for play in (call_stage(quota), call_stage(hold_every_call=1)):
        async with serving(play):
            await invoke(play, "c1")
            assert (await record(play, "c1")).hold == "call:c1"
            assert await told(play) == [("hold", 0), ("settle", 1)]


async def test_a_later_try_that_costs_more_adds_to_the_hold() -> None:
    """COST-9, COST-11: prices rise between two tries: what is lacking is held before the second is sent."""
    async with serving(call_stage()) as play:
        play.clock.advance(45)
        play.script("a/talk", Then(fault=BROKEN, after_s=20.0))  # prices are asked for anew each minute
        work = asyncio.ensure_future(play.invoke(timeout_s=100))
        await reached(play)
        play.quotes.amount = Decimal(49)
        await work
        assert [entry.held.cost / 1e9 for entry in await entries(play)] == [48, 1]


async def test_two_that_add_at_once_are_both_held_for() -> None:
    """COST-9: what one of them adds, and what others draw while the ledger is asked, is not there for the other."""
    async with serving(call_stage()) as play:
        play.clock.advance(45)
        for name in ("a/talk", "b/talk"):
            play.script(name, Then(fault=BROKEN, after_s=20.0), HANGS)  # prices are asked for anew each minute
        work = [asyncio.ensure_future(play._invoke(request(name, HELLO, timeout_s=100))) for name in ("c1", "c2")]
        await reached(play)
        assert play.provider.sent("a/talk") == play.provider.sent("b/talk") == 1
        play.quotes.amount = Decimal(49)
        play.clock.advance(20)
        for _ in range(200):
            await asyncio.sleep(0)
        assert play.provider.sent("a/talk") == play.provider.sent("b/talk") == 2
        assert await figures(play) == (0, 2 * 49)
        for each in work:
            each.cancel()


async def test_what_was_paid_in_another_currency_is_booked_too() -> None:
    """COST-9: the catalogue changes its currency between two tries: the first one's cost is booked where it was drawn,
    the second one's under the call's own Hold, and each try once."""
    dear = [chat_supply(name, charges_on_failure=True) for name in ("a/talk", "b/talk")]
    async with serving(call_stage(chat_catalog(*dear))) as play:
        play.quotes.pricing_away = RuntimeError("the quotes stand")
        play.script("a/talk", Then(fault=BROKEN, after_s=5.0))
        work = asyncio.ensure_future(play.invoke())
        await reached(play)
        play.catalog.revisions.append(replace(chat_catalog(*dear), revision=2, currency="USD"))
        await work
        await play.settled()
        call = await record(play, "c1")
        assert [str(item.cost) for item in call.tries] == [str(Money("CNY", Decimal(1))), str(Money("USD", Decimal(1)))]
        assert call.hold == "call:c1"
        await close(play)
        assert await figures(play) == (1 + 7, 0)
        assert sum([attempts for _, attempts in await told(play)]) == 2


async def test_the_records_settle_what_a_dead_process_held() -> None:
    """COST-9, COST-12: another process leaves the Hold alone while it may be at work, and while one of its calls has
    not ended; then it books what all of them cost, the one that nobody can resolve with its quote."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        work = await left_hanging(play)
        desk = replace(play.desk, store=deepcopy(play.store))  # as it was when the process died
        work.cancel()
        other = another(play, desk)
        await other()
        play.clock.advance(601)
        await other()
        assert await told(play) == [("hold", 0)]
        play.clock.advance(3600)
        await swept(desk)
        await other()
        found = await desk.store.get("c9")
        assert found is not None
        lost = found[0].tries[-1]
        assert lost.possible_charge
        assert await told(play) == [("hold", 0), ("settle", 2)]
        assert await figures(play) == (await cost_of(play, "c1") + float(lost.quote.amount), 0)


async def test_a_hold_of_a_dead_process_that_nothing_drew_on_is_given_back() -> None:
    """COST-12: it died between the Hold and the first intent."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        other = another(play, replace(play.desk, store=MemoryCalls()))
        await other()
        assert await told(play) == [("hold", 0)]
        play.clock.advance(601)
        await other()
        assert await told(play) == [("hold", 0), ("release", 0)]


class Forgetful(MemoryCalls):
    """Keeps no end of one call."""

    forgets = "c2"

    async def end(self, call: Call, rounds: Sequence[SelectionRound]) -> bool:
        """See the port."""
        if call.id == self.forgets:
            raise Fault.of("validation_failed", "it does not fit")
        return await super().end(call, rounds)


async def test_a_call_without_a_record_leaves_its_hold_to_the_records() -> None:
    """COST-12: what this process believes is not booked where the end of a call is not on record; what is found there
    later is."""
    stage = call_stage()
    forgetful = Forgetful()
    desk = replace(stage.desk, store=forgetful)
    async with serving(replace(stage, desk=desk)) as play:
        await invoke(play, "c1", "c2")
        await close(play)
        play.clock.advance(3600)
        await another(play, desk)()
        assert await told(play) == [("hold", 0)]
        forgetful.forgets = ""
        await swept(desk)
        await another(play, desk)()
        assert await told(play) == [("hold", 0), ("settle", 2)]


async def test_a_ledger_that_was_put_back_is_asked_for_another_hold() -> None:
    """COST-9: the Hold is unknown to a backup from before it; when its time is over calls are paid again."""
    async with serving(call_stage()) as play:
        await invoke(play, "c1")
        play.tasks.ledger.budgets = MemoryBudgets(play.clock)
        play.clock.advance(SERVES_S)
        await invoke(play, "c2")
        await close(play)
        assert await figures(play) == (await cost_of(play, "c2"), 0)

"""Money for all work, with a limit for tenants that have a quota of it (COST-9, COST-11, COST-12), over the real ledger
in memory."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.cost_quote.domain.budgets import Amounts, Asked, Declaration, HoldAsk
from services.cost_quote.store.budgets_memory import MemoryBudgets
from services.routing.app.check_budgets import CheckBudgets
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.app.settle_holds import SettleHolds
from services.routing.domain.catalog import Catalog, Spend, Tenant
from services.routing.domain.request import Terms
from services.routing.domain.spending import budget_id
from services.routing.domain.task import TaskState
from services.routing.ports import Polled, Reconciled
from services.routing.ports.alerts import AlertQuery
from tests.unit.routing.call_stage import ROLE, CallStage, Then, call_stage, chat_catalog, serving
from tests.unit.routing.dispatch_fakes import Stage, stage
from tests.unit.routing.dispatch_offers import catalog

BROKEN = Fault.of("provider_error", "the provider answered 500")
DAY = "tenant:t:day:2026-01-01:CNY"
MONTH = "tenant:t:month:2026-01-01:CNY"


def with_spend(offers: Catalog, cost: str, period: str = "day") -> Catalog:
    """The tenant `t` may spend so much."""
    return replace(offers, tenants={"t": Tenant("t", 1, spend=Spend(Decimal(cost), period))})


def house(cost: str = "100.00", **more: Any) -> Stage:
    """Two Supplies at the same quote for a clip, and a tenant with a quota of money."""
    return stage(offers=with_spend(catalog(), cost), **more)


@pytest.mark.parametrize("period, start", [("day", "2026-11-30"), ("week", "2026-11-30"), ("month", "2026-11-01")])
def test_a_period_is_one_of_the_calendar(period: str, start: str) -> None:
    """COST-9: the budget's id names the period's first day, in UTC."""
    late = datetime(2026, 12, 1, 1, 0, tzinfo=UTC) - timedelta(hours=2)
    assert budget_id("t", period, late, "CNY") == f"tenant:t:{period}:{start}:CNY"


async def test_a_task_holds_the_worst_before_it_is_sent_and_settles_what_it_cost() -> None:
    """COST-9: all permitted attempts at the highest quote; after the end what was really charged, and nothing held."""
    play = house()
    play.provider.polls = [Polled("running")]
    await play.submit()
    await play.work()
    [(name, spent, held)] = await play.ledger.figures()
    quote = (await play.task()).attempts[0].quote.amount
    assert (name, spent, held) == (DAY, 0, float(quote) * 2)
    await play.pass_time(60)
    task = await play.task()
    assert task.state is TaskState.SUCCEEDED
    assert await play.ledger.figures() == [(DAY, float(task.spent.amount), 0)]
    assert task.spent.amount > 0


async def test_a_second_attempt_is_paid_by_the_same_hold() -> None:
    """COST-9: one Hold for all attempts of a Task; both are booked by one settlement."""
    play = house()
    play.provider.answers = {"a/clip": [BROKEN]}
    await play.submit()
    await play.pass_time(60)
    task = await play.task()
    assert (task.state, len(task.attempts)) == (TaskState.SUCCEEDED, 2)
    entries = await play.ledger.budgets.entries(DAY, 0, 10)
    assert [(entry.kind.value, entry.spent.attempts) for entry in entries] == [("hold", 0), ("settle", 2)]


async def test_without_money_nothing_is_sent() -> None:
    """COST-9, COST-10: the Task ends with the level and the figures; no provider was called, no slot is held."""
    play = house("1.99")
    await play.submit()
    await play.work()
    task = await play.task()
    assert task.failure is not None
    assert (task.state, task.failure.code) == (TaskState.FAILED, "budget_exhausted")
    assert task.failure.message.startswith("tenant budget 'tenant:t:day:2026-01-01:CNY' is limited to 1.99 CNY")
    assert play.provider.calls == []
    assert not play.capacity.live()
    assert (await play.desk.store.rounds("t1"))[-1].note == task.failure.message
    [alert] = (await play.desk.store.alerts(AlertQuery()))[0]
    assert (alert.kind, alert.subject, alert.cause) == ("budget_hard_limit", DAY, "t1")


async def test_a_ledger_that_does_not_answer_lets_nothing_run() -> None:
    """COST-11: the Task waits with that reason, and goes on when the ledger is back."""
    play = house()
    play.ledger.away = True
    await play.submit()
    await play.work()
    assert (await play.task()).waiting_reason.startswith("governance: governance_backend_down")
    assert play.provider.calls == []
    play.ledger.away = False
    await play.pass_time(60)
    assert (await play.task()).state is TaskState.SUCCEEDED


async def test_work_of_a_tenant_without_a_quota_is_held_and_counted() -> None:
    """COST-9: under a root budget of the month that has no limit; what its Tasks and calls have cost is its sum."""
    play = stage()
    play.provider.polls = [Polled("running")]
    await play.submit()
    await play.work()
    [(name, spent, held)] = await play.ledger.figures()
    assert (name, spent, held > 0) == (MONTH, 0, True)
    await play.pass_time(60)
    task = await play.task()
    assert await play.ledger.figures() == [(MONTH, float(task.spent.amount), 0)]
    [budget] = await play.ledger.budgets.find("t", "", 0, 10)
    assert (budget.hard, budget.spent.attempts) == (Amounts(), 1)
    async with serving(call_stage()) as talk:
        answer = await talk.invoke()
        await talk.settled()
        await talk.desk.holds.settle_shared(everything=True)
        assert await figures(talk) == [(MONTH, float(money(answer.call.cost)), 0)]


@pytest.mark.parametrize("streamed", [False, True])
async def test_what_a_call_sends_is_held_by_then(streamed: bool) -> None:
    """COST-9, COST-11: each try of a call, also behind a failure, also of a stream, finds its Hold held when its
    provider hears of it (`paid` looks); in the end all of it is settled as one."""
    async with serving(call_stage(hold_every_call=1)) as play:
        play.script("a/talk", Then(fault=BROKEN))
        play.script("b/talk", Then(chunks=(ROLE,)))
        await (play.stream() if streamed else play.invoke())
        await play.settled()
        entries = await play.tasks.ledger.budgets.entries(MONTH, 0, 10)
        assert [(entry.kind.value, entry.spent.attempts) for entry in entries] == [("hold", 0), ("settle", 2)]
        assert play.provider.sent() == 2


async def test_a_ledger_that_is_away_keeps_every_tenants_work_back() -> None:
    """COST-9, COST-11: no quota, no Hold, no byte: the Task waits, the call is refused and its slot given back."""
    play = stage()
    play.ledger.away = True
    await play.submit()
    await play.work()
    assert (await play.task()).waiting_reason.startswith("governance: governance_backend_down")
    assert play.provider.calls == []
    async with serving(call_stage()) as talk:
        talk.tasks.ledger.away = True
        fault = await talk.refused()
        await talk.settled()
        assert (fault.code, talk.provider.sent(), talk.capacity.live()) == ("governance_backend_down", 0, {})


async def test_a_hold_that_was_cancelled_from_inside_is_none() -> None:
    """COST-9, COST-11: a question that a library cancelled by itself has taken no Hold that anybody knows of: nothing
    is sent, and the slot is given back."""
    async with serving(call_stage()) as talk:
        talk.tasks.ledger.cut = True
        fault = await talk.refused()
        await talk.settled()
        assert (fault.code, talk.provider.sent(), talk.capacity.live()) == ("governance_backend_down", 0, {})


async def test_a_ledger_that_was_put_back_is_told_of_its_budgets_again() -> None:
    """COST-9: a backup from before the month's first work knows no budget of it; a process that lives on declares it
    anew, and does not refuse work until it is started again."""
    play = stage()
    for name in ("t1", "t2"):
        play.ledger.budgets = MemoryBudgets(play.clock)
        await play.submit(name)
        await play.pass_time(60)
        task = await play.task(name)
        assert task.state is TaskState.SUCCEEDED
        assert await play.ledger.figures() == [(MONTH, float(task.spent.amount), 0)]


async def test_a_quota_limits_what_was_spent_before_it_was_given() -> None:
    """COST-9, AUTH-2: the month's budget was there; its sum counts. Taken away again, the limit stays for the month."""
    play = stage()
    await play.submit()
    await play.pass_time(60)
    spent = (await play.task()).spent.amount
    for revision, offers in enumerate((with_spend(catalog(), "1.50", "month"), catalog()), 2):
        play.catalog.revisions.append(replace(offers, revision=revision))
        await play.submit(f"t{revision}")
        await play.pass_time(60)
        failure = (await play.task(f"t{revision}")).failure
        assert failure is not None
        assert failure.code == "budget_exhausted"
    assert await play.ledger.figures() == [(MONTH, float(spent), 0)]


async def test_a_task_that_its_callers_hold_pays_for_takes_none() -> None:
    """COST-9: the production's budget pays; the tenant's does not pay again."""
    paid = house()
    await with_hold(paid, "node-7", 5)
    await paid.submit(terms=Terms(hold="node-7"))
    await paid.pass_time(60)
    assert (await paid.task()).state is TaskState.SUCCEEDED
    assert await paid.ledger.figures() == [("run", 0, 5)]


async def with_hold(play: Stage, name: str, cost: int, limit: int = 10) -> None:
    """A caller's own budget, and a Hold of so many yuan in it."""
    yuan = 10**9
    await play.ledger.budgets.create(Declaration("run", "episode", currency="CNY", hard=Amounts(limit * yuan)))
    asked = Asked(cost * yuan, "CNY", 2, 0, {"CNY": cost * yuan})
    await play.ledger.budgets.hold(HoldAsk(name, "run", asked, "a node"))


def dearer(price: str, **more: Any) -> Stage:
    """The first Attempt fails, and while it is under way every price becomes that."""

    async def rises(where: str) -> None:
        if where == "provider.submit":
            play.quotes.amounts = dict.fromkeys(("a/clip", "b/clip"), Decimal(price))

    play = house(effect=rises, **more)
    play.provider.answers = {"a/clip": [BROKEN]}
    return play


async def test_an_attempt_that_costs_more_than_is_held_adds_to_its_hold() -> None:
    """COST-9, COST-11: the price rises between the Hold and an Attempt: what is lacking is held before it is sent."""
    play = dearer("5")
    await play.submit()
    await play.pass_time(60)
    assert (await play.task()).state is TaskState.SUCCEEDED
    entries = await play.ledger.budgets.entries(DAY, 0, 10)
    kinds = [(entry.kind.value, entry.held.cost / 1e9, entry.spent.cost / 1e9) for entry in entries]
    assert kinds == [("hold", 2, 0), ("hold", 3, 0), ("settle", -5, 5)]


async def test_an_attempt_beyond_the_hard_limit_is_not_sent() -> None:
    """COST-11: where the limit has no room for what it costs by now, the Task ends with the figures."""
    play = dearer("5", cost="4.00")
    await play.submit()
    await play.pass_time(60)
    task = await play.task()
    assert task.failure is not None
    assert (task.failure.code, len(task.attempts)) == ("budget_exhausted", 1)
    assert [name for name, _ in play.provider.calls].count("submit") == 1
    assert await play.ledger.figures() == [(DAY, 0, 0)]
    [alert] = (await play.desk.store.alerts(AlertQuery()))[0]
    assert (alert.kind, alert.subject) == ("budget_hard_limit", DAY)


async def test_a_callers_hold_is_added_to_within_its_budget() -> None:
    """COST-9, COST-11: the Hold of a node whose price has risen grows, as far as the budget of its run admits."""
    for limit, state in ((10, TaskState.SUCCEEDED), (4, TaskState.FAILED)):
        play = house()
        play.quotes.amounts = dict.fromkeys(("a/clip", "b/clip"), Decimal(5))
        await with_hold(play, "node-7", 2, limit)
        await play.submit(terms=Terms(hold="node-7"))
        await play.pass_time(60)
        assert (await play.task()).state is state
        assert await play.ledger.figures() == [("run", 0, 5 if limit == 10 else 2)]
        assert bool(play.provider.calls) is (limit == 10)


async def test_nothing_is_sent_under_a_hold_that_has_gone() -> None:
    """COST-9: a Hold that was given back, or that nobody ever took, pays for nothing; no limit is blamed for it."""
    for name in ("gone", "never"):
        play = house()
        await with_hold(play, "gone", 5)
        await play.ledger.release("gone", "another replica gave it back")
        await play.submit(terms=Terms(hold=name))
        await play.pass_time(60)
        failure = (await play.task()).failure
        assert failure is not None
        assert (failure.code, play.provider.calls, play.capacity.live()) == ("budget_exhausted", [], {})
        assert failure.message.endswith("nothing is sent without a Hold")
        assert (await play.desk.store.alerts(AlertQuery()))[0] == ()


async def test_a_dearer_hold_of_an_earlier_step_is_taken_as_it_stands() -> None:
    """COST-9, COST-11: who died after the Hold leaves it to the next one, at whatever prices are by then."""
    play = house()
    await play.ledger.declare(DAY, "t", "CNY", Money("CNY", Decimal(100)), "as the catalogue declares it")
    await play.ledger.hold("task:t1", DAY, Money("CNY", Decimal(7)), 2, "task:t1")
    await play.submit()
    await play.pass_time(60)
    assert (await play.task()).state is TaskState.SUCCEEDED
    assert [entry.held.cost / 1e9 for entry in await play.ledger.budgets.entries(DAY, 0, 10)] == [7, -7]


async def test_an_uncertain_attempt_keeps_its_hold_until_it_is_resolved() -> None:
    """COST-12: also when the Task has ended as unresolved; the operator's word settles it."""
    play = house()
    play.provider.answers = {"a/clip": [None]}
    play.provider.verdicts = [Reconciled("unknown")] * 999
    await play.submit()
    await play.pass_time(60, 1)
    assert (await play.ledger.figures())[0][2] > 0
    await play.pass_time(2000, 60)
    task = await play.task()
    assert task.failure is not None
    assert task.failure.code == "submission_unresolved"
    [(_, spent, held)] = await play.ledger.figures()
    assert (spent, held > 0) == (0, True)
    await resolve_attempt(play.desk, Resolution(task.attempts[0].id, "accepted", "job-1"))
    assert await play.ledger.figures() == [(DAY, float(task.attempts[0].quote.amount), 0)]


async def test_a_forgotten_settlement_is_made_up_for() -> None:
    """COST-11, COST-12: who could not settle at the end, or died, leaves it to the walk over open Holds."""
    play = house()
    calls = call_stage(with_spend(chat_catalog(), "100.00"))
    await play.submit()
    await play.work()
    play.ledger.away = True
    await play.pass_time(60)
    play.ledger.away = False
    task = await play.task()
    assert task.state is TaskState.SUCCEEDED
    assert (await play.ledger.figures())[0][2] > 0
    await SettleHolds(play.desk, calls.desk)()
    assert await play.ledger.figures() == [(DAY, float(task.spent.amount), 0)]


async def test_a_call_holds_before_its_first_byte_and_settles_its_cost() -> None:
    """COST-9: the Hold is taken before the call is sent and is settled with what it cost."""
    async with serving(call_stage(with_spend(chat_catalog(), "100.00"))) as play:
        answer = await play.invoke()
        await play.settled()
        cost = money(answer.call.cost)
        assert await figures(play) == [(DAY, float(cost), 0)]
        assert cost > 0


async def test_a_call_without_money_is_refused_before_anything_is_sent() -> None:
    """COST-9, EDG-2: `budget_exhausted` with the budget that refused; its slot is given back."""
    async with serving(call_stage(with_spend(chat_catalog(), "0.50"))) as play:
        fault = await play.refused()
        await play.settled()
        assert (fault.code, fault.metadata["budget"], fault.metadata["dimension"]) == ("budget_exhausted", DAY, "cost")
        assert play.provider.sent() == 0
        assert not play.capacity.live()
        assert await figures(play) == [(DAY, 0, 0)]


async def test_a_hold_of_a_call_that_left_no_record_is_given_back() -> None:
    """COST-12: a process that died between the Hold and the intent sent nothing; after a while it is released."""
    play = call_stage(with_spend(chat_catalog(), "100.00"))
    ledger = play.tasks.ledger
    await ledger.declare(DAY, "t", "CNY", Money("CNY", Decimal(100)), "a test")
    await ledger.hold("call:lost", DAY, Money("CNY", Decimal(5)), 1, "call:lost")
    walk = SettleHolds(play.tasks.desk, play.desk)
    await walk()
    assert (await ledger.figures())[0][2] == 5
    play.clock.advance(601)
    await walk()
    assert await ledger.figures() == [(DAY, 0, 0)]


def money(cost: Any) -> Decimal:
    """Of an answer, in yuan."""
    return Money.from_nanos("CNY", cost.units * 10**9 + cost.nanos).amount


async def figures(play: CallStage) -> list[tuple[str, float, float]]:
    """What the ledger says."""
    return await play.tasks.ledger.figures()


async def test_a_ledger_that_does_not_add_up_is_an_alert() -> None:
    """OPS-6, COST-11: critical, about the budget, once for each thing that is wrong."""
    play = stage()
    play.ledger.wrong = [("ep-1", "its entries do not sum up"), ("ep-1", "cost is beyond the hard limit")]
    check = CheckBudgets(play.desk)
    for _ in range(2):
        await check()
    page, _ = await play.desk.store.alerts(AlertQuery())
    told = {(item.kind, item.severity, item.subject, item.message, item.count) for item in page}
    assert told == {("ledger_mismatch", "critical", "ep-1", what, 1) for _, what in play.ledger.wrong}

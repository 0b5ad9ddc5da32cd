"""What follows tries and calls: slots, health, prices and records. None of it may hurt a result (SYN-7).

Everything here is an errand of its own: it outlives the caller and its deadline, and what goes wrong is a warning.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from libs.faults.fault import Fault
from libs.faults.registry import Category, Scope
from libs.kernel.deadlines import carry_deadline
from libs.kernel.money import Money
from services.routing.app.book_usage import tolerance_of
from services.routing.app.calls import meters
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.call_holds import Payment
from services.routing.app.desk import alerts_of, failure_of
from services.routing.app.record import FIRST_PAUSE_S, PASSING, TRIES
from services.routing.domain.attempts import cost_of
from services.routing.domain.calls.call import Call, Try, with_costs
from services.routing.domain.calls.token_rates import cost_nanos
from services.routing.domain.catalog import Catalog, Supply
from services.routing.domain.decision import Decision, Inputs
from services.routing.domain.drift import Delivery, Promise, drift_alerts
from services.routing.domain.feedback import SILENT, Feedback, Pace
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.domain.selection_record import brief_text
from services.routing.domain.task import Failure
from services.routing.domain.usage import Usage
from services.routing.ports.alerts import Alert
from services.routing.ports.calls import Report
from services.routing.ports.prices import UsageItem

NOT_SENT = frozenset({"overloaded", "unimplemented", "deadline_required"})
"""Refusals of provider_adapter before it opened a socket: they say nothing of the provider."""
UNTOLD = frozenset({Category.CONTENT, Category.REQUEST})
"""Health has no use for them (HLT-5)."""
CUT_SHORT = "cut_short"
"""Metadata of a fault that our own caller's time made, not the provider's."""

log = logging.getLogger(__name__)


class Facts(Struct, frozen=True):
    """What a price may depend on beside the usage, by try."""

    kind: str
    figures: dict[str, Any]
    revision: int
    estimate: Usage | None = None
    """What it may have used, where its provider does not say."""
    quote_kind: str = ""
    link: str = ""


def round_of(
    call_id: str, number: int, inputs: Inputs, decision: Decision, outcome: RoundOutcome, note: str = ""
) -> SelectionRound:
    """A decision as it is kept with its call: without what the catalogue revision fixes."""
    return SelectionRound(call_id, number, inputs.now, outcome, brief_text(inputs, decision), note)


def unsent(desk: CallDesk, try_id: str) -> None:
    """No intent came of a lease."""
    desk.afterwards.begin(lambda: _release(desk, try_id, SILENT))


def give_back(desk: CallDesk, ended: Try, feedback: Feedback, told: Failure | None, tell: bool) -> None:
    """The slot, with what the end says of pace and tokens; and its outcome to health, where it has one."""
    now = desk.now()
    desk.afterwards.begin(lambda: _release(desk, ended.id, feedback))
    if tell:
        desk.afterwards.begin(lambda: _report(desk, ended, told, now))


def after_failure(desk: CallDesk, ended: Try, fault: Fault, estimate: Usage | None = None) -> None:
    """What a failed try gives back."""
    ours = fault.code in NOT_SENT
    congested = fault.category is Category.CAPACITY and not ours
    untouched = ours or fault.category is Category.CAPACITY or fault.scope is Scope.CHANNEL
    used = estimate.tokens if estimate else 0 if untouched else None
    pace = Pace.CONGESTED if congested else Pace.UNSAID
    feedback = Feedback(pace, (fault.retry_after_ms or 0) if congested else 0, used)
    tell = not ours and fault.category not in UNTOLD and CUT_SHORT not in fault.metadata
    give_back(desk, ended, feedback, told_to_health(fault), tell)


def told_to_health(fault: Fault) -> Failure:
    """A try of a synchronous kind is closed with its end: there is no job of which more will be heard, so an unknown
    outcome is resolved there and then: as a provider that did not answer, or whose answer was none. (What it may have
    charged stays open.)"""
    if fault.category is not Category.UNKNOWN:
        return failure_of(fault)
    evidence = fault.metadata.get("evidence", "")
    code = "malformed_reply" if evidence.startswith("status 2") else "provider_error"
    return failure_of(Fault.of(code if evidence.startswith("status") else "provider_timeout", fault.message))


def used_in_refusal(fault: Fault, estimate: Usage) -> Usage | None:
    """What was used for a refusal that the model itself has said, by its own word or else the estimate; None for any
    other fault (SYN-8)."""
    told = fault.metadata.get("answered")
    if told is None:
        return None
    read, _, made = told.partition("/")
    return Usage(input_tokens=int(read), output_tokens=int(made)) if read.isdecimal() and made.isdecimal() else estimate


def cost_of_failed(ended: Try, fault: Fault, supply: Supply) -> Money | None:
    """What a failed try has cost; None where nobody knows."""
    if fault.category is Category.UNKNOWN:
        return None
    turned_away = fault.category in (Category.REQUEST, Category.CAPACITY) or fault.scope is Scope.CHANNEL
    if supply.charges_on_failure and not turned_away:
        return ended.quote
    return Money.zero(ended.quote.currency)


async def priced(desk: CallDesk, catalog: Catalog, ended: Try, facts: Facts, report: Report) -> Money:
    """What a try has cost: as its provider says, else its usage by the rule that quoted it, else its quote."""
    try:
        return await _priced(desk, catalog, ended, facts, report)
    except Exception:  # whatever is wrong here, what was paid for is given (SYN-7)
        log.exception("try %s: its cost could not be told; the quote stands", ended.id)
        return ended.quote


async def _priced(desk: CallDesk, catalog: Catalog, ended: Try, facts: Facts, report: Report) -> Money:
    if report.reported_cost is not None:
        cost = cost_of(ended.quote, report.reported_cost, catalog.fx)
    else:
        cost = await _by_usage(desk, ended, facts, report.usage or facts.estimate) or ended.quote
    if report.reported_cost is not None or report.usage:
        _tell_drift(desk, ended, facts, Delivery(cost, None, report.usage or Usage(), {}, ()))
    return cost


def _tell_drift(desk: CallDesk, ended: Try, facts: Facts, delivery: Delivery) -> None:
    """An alert where the provider's word on usage or money does not fit what was quoted (OPS-6)."""
    sent = Promise(ended.id, ended.supply, ended.quote, facts.quote_kind, ended.price_rule, facts.figures)
    drafts = drift_alerts(sent, delivery, tolerance_of(desk.settings))
    if drafts:
        raised = alerts_of(desk, drafts, facts.link)
        desk.afterwards.begin(lambda: tell_alerts(desk, raised))


async def tell_alerts(desk: CallDesk, raised: Sequence[Alert]) -> None:
    """Keep them."""
    carry_deadline(None)
    await desk.alerts.raise_alerts(raised)


def count(call: Call) -> None:
    """Metrics and traces of an ended call. They never fail it."""
    try:
        meters.ended(call)
    except Exception:
        log.exception("call %s was not counted", call.id)


def keep(
    desk: CallDesk, call: Call, facts: dict[str, Facts], rounds: tuple[SelectionRound, ...], payment: Payment
) -> None:
    """The record of an ended call, and what becomes of its Hold."""
    payment.over = True
    if any(item.cost is None and facts[item.id].estimate is not None for item in call.tries):
        desk.afterwards.begin(lambda: _keep_priced(desk, call, facts, rounds, payment))
        return
    desk.afterwards.begin(lambda: _keep(desk, call, rounds, payment))
    if payment.own:
        desk.afterwards.begin(lambda: _settle(desk, call))


def _settle(desk: CallDesk, call: Call) -> Awaitable[object]:
    begun = asyncio.ensure_future(desk.funds.settle_call(call))
    begun.add_done_callback(lambda done: _settled(call.id, done))
    return begun


def _settled(call_id: str, done: "asyncio.Future[None]") -> None:
    """What was not settled now is settled by `settle_holds`."""
    if not done.cancelled() and (error := done.exception()) is not None:
        log.warning("call %s: its Hold was not settled now: %s", call_id, error)


async def _keep_priced(
    desk: CallDesk, call: Call, facts: dict[str, Facts], rounds: tuple[SelectionRound, ...], payment: Payment
) -> None:
    """The record, with what broken or abandoned tries had used (SYN-8)."""
    carry_deadline(None)
    costs: dict[str, Money] = {}
    for item in call.tries:
        if item.cost is None:
            cost = await _by_usage(desk, item, facts[item.id], facts[item.id].estimate)
            if cost is not None:
                costs[item.id] = cost
    priced = with_costs(call, costs)
    if payment.own:
        desk.errands.begin(_settle(desk, priced))
    await _keep(desk, priced, rounds, payment)


def _keep(desk: CallDesk, call: Call, rounds: tuple[SelectionRound, ...], payment: Payment) -> Awaitable[object]:
    begun = asyncio.ensure_future(desk.store.end(call, rounds))
    begun.add_done_callback(lambda done: _kept(desk, call, rounds, payment, done))
    return begun


def _kept(
    desk: CallDesk,
    call: Call,
    rounds: tuple[SelectionRound, ...],
    payment: Payment,
    done: "asyncio.Future[bool]",
) -> None:
    error = None if done.cancelled() else done.exception()
    if isinstance(error, Fault):
        desk.errands.begin(_keep_again(desk, call, rounds, payment, error))
    else:
        payment.kept(call, not done.cancelled() and error is None and done.result())


async def _keep_again(
    desk: CallDesk, call: Call, rounds: tuple[SelectionRound, ...], payment: Payment, fault: Fault
) -> None:
    """The store did not take it: later it may."""
    carry_deadline(None)
    pause_s = FIRST_PAUSE_S
    for _ in range(TRIES - 1):
        if fault.code not in PASSING:
            break
        await desk.world.clock.sleep(pause_s)
        pause_s *= 2
        try:
            payment.kept(call, await desk.store.end(call, rounds))
            return
        except Fault as again:
            fault = again
    payment.kept(call, False)
    log.warning("call %s ended as %s, and its record was not kept: %s", call.id, call.state, fault)


async def _by_usage(desk: CallDesk, ended: Try, facts: Facts, usage: Usage | None) -> Money | None:
    if usage is None or not ended.price_rule:
        return None
    rates = desk.memory.quoted.rates(facts.revision, ended.price_rule, ended.price_version)
    nanos = None if rates is None else cost_nanos(rates, usage)
    if nanos is not None:
        return Money.from_nanos(ended.quote.currency, nanos)
    used = UsageItem(
        key=ended.id,
        kind=facts.kind,
        supply=ended.supply,
        rule_id=ended.price_rule,
        rule_version=ended.price_version,
        usage=usage,
        facts=facts.figures,
        catalog_revision=facts.revision,
        submitted_at=ended.sent_at,
    )
    try:
        return await desk.prices.ask(used)
    except Fault as fault:
        log.warning("try %s: what it used was not priced: %s", ended.id, fault)
        return None


async def price_all(desk: CallDesk, used: Sequence[UsageItem]) -> Sequence[Money | None]:
    """One question for all tries that ended in a turn."""
    carry_deadline(None)
    prices = await desk.quotes.price_usage(used)
    return [prices[item.key].cost if item.key in prices else None for item in used]


def succeeded_feedback(ended: Try, estimate: Usage) -> Feedback:
    """What a success says of pace and tokens."""
    return Feedback(Pace.SUCCEEDED, used_tokens=(ended.usage or estimate).tokens)


def _release(desk: CallDesk, lease_id: str, feedback: Feedback) -> Awaitable[object]:
    begun = asyncio.ensure_future(desk.capacity.release(lease_id, feedback))
    begun.add_done_callback(lambda done: _released(desk, lease_id, done))
    return begun


def _released(desk: CallDesk, lease_id: str, done: "asyncio.Future[None]") -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        log.warning("lease %s was not released and is left to its time to live: %s", lease_id, error)
    desk.memory.room.freed()


def _report(desk: CallDesk, ended: Try, failure: Failure | None, observed_at: datetime) -> Awaitable[object]:
    begun = asyncio.ensure_future(desk.health.report(ended, failure, ended.sent_at, observed_at))
    begun.add_done_callback(lambda done: _reported(ended.id, done))
    return begun


def _reported(try_id: str, done: "asyncio.Future[None]") -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        log.warning("try %s: health did not take its outcome: %s", try_id, error)

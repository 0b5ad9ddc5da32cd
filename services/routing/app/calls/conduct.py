"""One call under way: it looks for a place, tries, switches, waits and ends (SYN-1 to SYN-7).

Laws of this file:
- one total timeout covers everything; nobody is waited for beyond it;
- the intent of a try is durable before the provider hears of it (SYN-3, ATT-5), and its lease is held by then;
- what follows a try (slot, health, price, record) is an errand: it can neither delay nor destroy a result (SYN-7);
- whatever ends the call, it leaves one record of it.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct, structs

from libs.faults.fault import Fault
from libs.faults.registry import Scope
from libs.kernel.money import Money
from services.routing.app.calls import settle_call
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.call_turn import Ask, Seat, take_seat
from services.routing.app.calls.open_call import Opened
from services.routing.app.calls.waiting import Waiting
from services.routing.app.desk import alerts_of, failure_of
from services.routing.domain.calls import ends
from services.routing.domain.calls.call import Call, CallState, Changed, Try, TryState, spent_in
from services.routing.domain.calls.patience import Patience
from services.routing.domain.calls.retry_budget import Next, RetryBudget, consumes
from services.routing.domain.calls.sizing import facts_to_quote, input_tokens
from services.routing.domain.calls.stall_clock import NANOS, StallClock
from services.routing.domain.calls.sync_settings import LEASE_MARGIN_S
from services.routing.domain.catalog import Channel, Kind, Supply
from services.routing.domain.decision import Decision, Fate, HealthView, Inputs, Verdict
from services.routing.domain.degradation import degrade
from services.routing.domain.feedback import Feedback
from services.routing.domain.rounds import RoundOutcome, SelectionRound
from services.routing.domain.task import Artifact
from services.routing.domain.usage import Usage
from services.routing.ports import Refused
from services.routing.ports.calls import Intent, Report

encode = msgspec.json.Encoder().encode
MISSED = frozenset({TryState.FAILED, TryState.UNKNOWN})
"""Tries that speak against their Supply."""
OVERDUE_S = 30.0  # a call that has not ended so long after its last lease is over has lost its process
LOOKS_AT_ONCE = 8  # reservations may be refused one after the other before the call waits like everybody else


class Started(Struct, frozen=True):
    """A try that may be sent now."""

    tried: Try
    channel: Channel
    supply: Supply
    decision: Decision


class Conduct:
    """The loop of one call, shared by whole answers and streams. Made for each call, used once."""

    def __init__(self, desk: CallDesk, opened: Opened) -> None:
        self.desk = desk
        self.opened = opened
        self.sync = opened.sync
        self.kind = opened.model.kind
        self.began_ns = desk.now_ns()
        self.began_at = desk.now()
        self.clock = StallClock(self.began_ns)
        self.budget = RetryBudget(opened.sync.max_attempts)
        self.request = opened.request
        """What the next try is to do: all of it, or what is left of it (`batches`)."""
        self.prefer = ""
        self.patience = Patience(opened.sync)
        self.waiting = Waiting(desk, opened.model.id, opened.sync.stall_window_s, self.clock)
        self.tries: list[Try] = []
        self.unsent: list[SelectionRound] = []
        """Rounds that no try came of."""
        self.changed: Changed | None = None
        self._fates: tuple[Fate, ...] = ()
        self._refusals = self._rounds = 0
        self._under_way: Started | None = None
        self._sent_ns = 0
        self._first_ns: int | None = None
        self._facts: dict[str, settle_call.Facts] = {}
        self._payment = desk.holds.payment()
        asked = opened.asked
        self._call = Call(
            id=asked.call_id,
            tenant=asked.tenant,
            model=opened.model.id,
            kind=str(self.kind),
            created_at=self.began_at,
            currency=opened.catalog.currency,
            catalog_revision=opened.catalog.revision,
            session_id=asked.session_id,
            parent_call_id=asked.parent_call_id,
        )

    @property
    def left_s(self) -> float:
        """What is left of the total timeout, in seconds; never below 0."""
        return max(0.0, self.opened.total_s - (self.desk.now_ns() - self.began_ns) / NANOS)

    # --- A place ------------------------------------------------------------------------------------------------------

    async def start(self, digest: Mapping[str, Any] | None = None) -> Started:
        """The next try, its intent durable. Raises the Fault with which the call ends where there is none.

        `digest` is that of what the try is to do, where it is not the whole of the request.
        """
        if digest is not None:
            self.request = replace(self.request, input=digest)
        if self.tries and (stalled := await self.waiting.verdict(self._fates, self.patience.holds)):
            raise self.ended(stalled)
        while True:
            if self.left_s <= 0:
                raise self.ended(self._out_of_time())
            try:
                seat = await take_seat(self._ask())
            except Fault as fault:
                raise self.ended(ends.governance(fault)) from fault
            self._fates = seat.decision.fates
            self._raise_alerts(seat.decision)
            if seat.lease is not None:
                return await self._begin(seat)
            if seat.refused is not None:
                await self._turned_away(seat, seat.refused)
            else:
                await self._rest(seat)

    def _ask(self) -> Ask:
        return Ask(
            desk=self.desk,
            request=self.request,
            selector=self.sync.selector,
            spent=spent_in(self.tries, self._call.currency),
            left_s=self.left_s,
            fund=self._fund,
            prefer=self.prefer,
            tried=tuple(item.supply for item in self.tries if item.state in MISSED),
            not_before={name: hold.until for name, hold in self.patience.holds.items()},
            call_tries=self.sync.max_attempts,
        )

    def _fund(self, inputs: Inputs, decision: Decision) -> Awaitable[None] | None:
        return self.desk.holds.fund(self._payment, self.opened.catalog, self._call, inputs, decision)

    async def _begin(self, seat: Seat) -> Started:
        inputs, decision = seat.inputs, seat.decision
        supply = inputs.supplies[decision.chosen]
        quote = inputs.quotes[supply.id]
        assert quote.amount is not None  # an unpriced Supply is never chosen (COST-4)
        now = self.desk.now()
        kept = self._round(seat, RoundOutcome.RESERVED)
        tried = Try(
            id=seat.try_id,
            number=len(self.tries) + 1,
            supply=supply.id,
            channel=supply.channel,
            state=TryState.SENT,
            quote=Money(inputs.currency, quote.amount),
            round=kept.round,
            sent_at=now,
            channel_epoch=inputs.channel_health.get(supply.channel, HealthView()).epoch,
            supply_epoch=inputs.supply_health.get(supply.id, HealthView()).epoch,
            price_rule=quote.rule_id,
            price_version=quote.rule_version,
            reserved_tokens=seat.tokens,
        )
        if inputs.catalog_revision != self._call.catalog_revision:
            self._call = structs.replace(self._call, catalog_revision=inputs.catalog_revision, currency=inputs.currency)
        overdue = now + timedelta(seconds=self.left_s + LEASE_MARGIN_S + OVERDUE_S)
        hold = self._payment.hold(self._call.id)
        sent = structs.replace(self._call, tries=(*self.tries, tried), changed=_changed(decision), hold=hold)
        intent = Intent(sent, kept, overdue)
        try:
            await self.desk.store.intend(intent)
        except BaseException as error:
            settle_call.unsent(self.desk, tried.id)
            if isinstance(error, Fault):
                raise self.ended(ends.governance(error)) from error
            raise
        self.tries.append(tried)
        self.changed = _changed(decision)
        figures = facts_to_quote(self.kind, decision.input, supply)
        link = f"/v1/calls/{self._call.id}"
        self._facts[tried.id] = settle_call.Facts(
            str(self.kind), figures, inputs.catalog_revision, quote_kind=quote.kind, link=link
        )
        self._sent_ns, self._first_ns = self.desk.now_ns(), None
        self.clock.begin_try(self._sent_ns)
        self._under_way = Started(tried, inputs.channels[supply.channel], supply, decision)
        return self._under_way

    def _round(self, seat: Seat, outcome: RoundOutcome, note: str = "") -> SelectionRound:
        self._rounds += 1
        return settle_call.round_of(self._call.id, self._rounds, seat.inputs, seat.decision, outcome, note)

    def _raise_alerts(self, decision: Decision) -> None:
        """What a choice, or its want, asks to be told; the same thing now and then, not with every call (TIER-7)."""
        now = self.desk.now()
        fresh = [item for item in decision.alerts if self.desk.memory.is_news(f"{item.kind}:{item.subject}", now)]
        if fresh:
            raised = alerts_of(self.desk, fresh, f"/v1/calls/{self._call.id}")
            self.desk.afterwards.begin(lambda: settle_call.tell_alerts(self.desk, raised))

    # --- What became of a try -----------------------------------------------------------------------------------------

    def failed(self, started: Started, fault: Fault, used: Usage | None = None) -> None:
        """The try failed. Returns where another may follow; else raises the Fault with which the call ends. `used`
        estimates what it had used; it is there when the first token had come, and then nothing can follow."""
        used = used or settle_call.used_in_refusal(fault, self.estimate(started, 1))
        failure, begun = failure_of(fault), used is not None
        follows = self.budget.after(failure, self.kind, self.sync, begun)
        now_ns = self.desk.now_ns()
        self.clock.end_try(now_ns, consumes(failure))
        unknown = failure.category == "unknown"
        state = TryState.UNKNOWN if unknown else TryState.FAILED if consumes(failure) else TryState.CONGESTED
        ended = self._close(started, now_ns, state=state, failure=failure, possible_charge=unknown or begun)
        if used is None:
            ended = self._booked(ended, settle_call.cost_of_failed(ended, fault, started.supply))
        else:
            self._facts[ended.id] = structs.replace(self._facts[ended.id], estimate=used)
        settle_call.after_failure(self.desk, ended, fault, used)
        self._hold(started, ended, fault)
        if follows is not Next.AGAIN:
            raise self.ended(fault if follows is Next.FINAL else self._exhausted()) from fault

    async def succeeded(self, started: Started, report: Report, estimate: Usage) -> Try:
        """The try gave what was asked for; answered with its cost, which no failure of bookkeeping keeps back.
        `estimate` is what it is settled by where its provider reports no usage."""
        now_ns = self.desk.now_ns()
        self.clock.end_try(now_ns, consumed=True)
        if report.first_token_s is not None and self._first_ns is None:
            self._first_ns = self._sent_ns + round(report.first_token_s * NANOS)
        ended = self._close(
            started,
            now_ns,
            state=TryState.SUCCEEDED,
            usage=report.usage,
            provider_request_id=report.provider_request_id,
        )
        self.desk.memory.successes[self._call.model] = self.desk.now()
        self._facts[ended.id] = facts = structs.replace(self._facts[ended.id], estimate=estimate)
        settle_call.give_back(self.desk, ended, settle_call.succeeded_feedback(ended, estimate), None, tell=True)
        return self._booked(ended, await settle_call.priced(self.desk, self.opened.catalog, ended, facts, report))

    def first_token(self) -> bool:
        """A token has come; whether it is the first one."""
        if self._first_ns is not None:
            return False
        self._first_ns = self.desk.now_ns()
        return True

    def _close(self, started: Started, now_ns: int, **changes: object) -> Try:
        sent = self.tries[started.tried.number - 1]
        latency_ns = max(0, now_ns - self._sent_ns)
        first_ns = None if self._first_ns is None else max(0, self._first_ns - self._sent_ns)
        ended = structs.replace(sent, latency_ns=latency_ns, first_token_ns=first_ns, **changes)
        self.tries[ended.number - 1] = ended
        return ended

    def _booked(self, ended: Try, cost: Money | None) -> Try:
        booked = self.tries[ended.number - 1] = structs.replace(ended, cost=cost)
        return booked

    def _hold(self, started: Started, ended: Try, fault: Fault) -> None:
        """Who has failed is left alone for a while; so are others on its account where that is what failed."""
        name, now, chance = started.supply.id, self.desk.now(), self.desk.chance()
        if ended.state is TryState.CONGESTED:
            self.patience.congested(name, fault.message, fault.retry_after_ms, now, self.left_s, chance)
            return
        alike: list[str] = []
        if fault.scope is Scope.CHANNEL:
            bound, known = {binding.supply for binding in self.opened.model.bindings}, self.opened.catalog.supplies
            alike = [name for name in bound & known.keys() if known[name].channel == started.channel.id]
        self.patience.failed(name, alike, fault, now, self.left_s, chance)

    # --- Nobody serves now --------------------------------------------------------------------------------------------

    async def _turned_away(self, seat: Seat, refused: Refused) -> None:
        """SEL-17: another round with fresh snapshots, in which this gate is closed."""
        self._refusals += 1
        words = f"{refused.level} {refused.gate} {refused.used} of {refused.limit}"
        self.unsent.append(self._round(seat, RoundOutcome.REFUSED, words))
        stale = refused.gate == "stale_health" and self._refusals <= LOOKS_AT_ONCE
        if stale or await self.waiting.caught_up(self.left_s):
            return
        chosen, held = seat.inputs.supplies[seat.decision.chosen], [seat.decision.chosen]
        if refused.level == f"channel {chosen.channel}":
            held = [item.id for item in seat.inputs.supplies.values() if item.channel == chosen.channel]
        elif not refused.level.startswith("supply "):
            held = list(seat.inputs.supplies)
        self.patience.refused(held, words, refused.retry_at, self.desk.now(), self.left_s, self.desk.chance())

    async def _rest(self, seat: Seat) -> None:
        """Wait for a better moment, if there is one and the policy permits it; else end."""
        decision, now = seat.decision, self.desk.now()
        if decision.verdict is Verdict.FAIL:
            self.unsent.append(self._round(seat, RoundOutcome.FAILED))
            if self.budget.used and decision.failure_code == "cost_limit_exceeded":
                raise self.ended(self._exhausted(no_more=decision.failure_message))
            raise self.ended(ends.refused(decision, seat.inputs))
        if await self.waiting.caught_up(self.left_s):
            return
        until = self.patience.next_look(decision.fates, decision.retry_at, now, self.desk.chance())
        if until is None or (until - now).total_seconds() >= self.left_s:
            self.unsent.append(self._round(seat, RoundOutcome.WAITING))
            raise self.ended(self._nobody(decision, until is not None))
        verdict = await self.waiting.wait((until - now).total_seconds(), self._fates, self.patience.holds)
        if verdict is not None:
            self.unsent.append(self._round(seat, RoundOutcome.WAITING))
            raise self.ended(verdict)

    def _nobody(self, decision: Decision, in_vain: bool) -> Fault:
        """`in_vain`: it might wait, but not so long."""
        if self.budget.used:
            return self._exhausted(self.opened.total_s if in_vain else None)
        return ends.waiting(decision, self.patience.holds, self.desk.now())

    def _out_of_time(self) -> Fault:
        if self.budget.used:
            return self._exhausted(self.opened.total_s)
        if self._fates:
            return ends.waiting(Decision(Verdict.WAIT, self._fates), self.patience.holds, self.desk.now())
        return Fault.of("deadline_exceeded", f"no place was found within {self.opened.total_s:g} s")

    def _exhausted(self, out_of_time_s: float | None = None, no_more: str = "") -> Fault:
        used, most, doubted = self.budget.used, self.budget.most, any(item.possible_charge for item in self.tries)
        return ends.exhausted(used, most, self._fates, self.patience.holds, out_of_time_s, doubted, no_more)

    def text_for(self, started: Started, given: Mapping[str, Any] | None = None) -> bytes:
        """The input for that Supply: the caller's own bytes, unless degradation or a batch has changed them."""
        rule = self.opened.catalog.rules.get(started.decision.rule)
        if rule is None and given is None:
            return self.opened.asked.input
        whole = self.opened.given if given is None else given
        return encode(degrade(rule, whole).input if rule else whole)

    # --- The end ------------------------------------------------------------------------------------------------------

    def ended(self, fault: Fault) -> Fault:
        """Keep the call as failed; the Fault to be raised."""
        self._finish(CallState.FAILED, failure=ends.failure_of_call(fault))
        return fault

    def finished(self, usage: Usage | None, artifacts: tuple[Artifact, ...] = ()) -> Call:
        """Keep the call as succeeded; the call."""
        supply = self.tries[-1].supply if self.tries else ""
        return self._finish(CallState.SUCCEEDED, supply=supply, usage=usage, artifacts=artifacts)

    def found(self, artifacts: tuple[Artifact, ...]) -> Call:
        """Keep the call as served by the response cache: it has cost nothing."""
        return self._finish(CallState.SUCCEEDED, cached=True, artifacts=artifacts)

    def estimate(self, started: Started, made: int | None = None) -> Usage:
        """What a try has surely used once it was sent: the tokens that there are to read; and `made` tokens."""
        if self.kind is not Kind.CHAT and self.kind is not Kind.EMBEDDING:
            return Usage(output_tokens=made)
        return Usage(input_tokens=input_tokens(self.kind, started.decision.input), output_tokens=made)

    def abandoned(self, used: Usage | None = None) -> None:
        """The caller has left. A try under way may have been charged, and what it held is given back."""
        started = self._under_way
        if started is not None and self.tries[-1].state is TryState.SENT:
            used = used or self.estimate(started)
            now_ns = self.desk.now_ns()
            self.clock.end_try(now_ns, consumed=True)
            ended = self._close(started, now_ns, state=TryState.ABANDONED, possible_charge=True)
            self._facts[ended.id] = structs.replace(self._facts[ended.id], estimate=used)
            settle_call.give_back(self.desk, ended, Feedback(used_tokens=used.tokens), None, tell=False)
        self._finish(CallState.ABANDONED)

    def _finish(self, state: CallState, **changes: object) -> Call:
        times = self.clock.times(self.desk.now_ns())
        call = structs.replace(
            self._call,
            state=state,
            tries=tuple(self.tries),
            changed=self.changed,
            times=times,
            finished_at=self.desk.now(),
            hold=self._payment.hold(self._call.id),
            **changes,
        )
        self._call = call
        settle_call.count(call)
        settle_call.keep(self.desk, call, self._facts, tuple(self.unsent), self._payment)
        return call


def _changed(decision: Decision) -> Changed | None:
    if not decision.rule:
        return None
    return Changed(decision.rule, decision.requested_profile, decision.actual_profile, decision.dropped_inputs)

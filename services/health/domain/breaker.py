"""The breaker: one deterministic step. Channel and Supply each run their own.

Laws of this file:
- `step` is total: every observation in every state gives a state and events, and never an error, except for an
  operator's command that the table does not know (`refuses` tells beforehand);
- only a success that was dispatched in the present epoch climbs the ladder (HLT-6);
- in probing and recovering no threshold applies (HLT-4);
- a failure counts only if it was observed after the present state began (HLT-6).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from msgspec import Struct, structs

from services.health.domain import events as history
from services.health.domain.events import Event, Health
from services.health.domain.ladder import RUNGS, allowed_slots
from services.health.domain.observations import (
    Command,
    CooldownOver,
    Declared,
    Failure,
    Family,
    Observation,
    Success,
    SupplyFailure,
)
from services.health.domain.states import LADDER, SHUT, TABLE, Signal, State
from services.health.domain.statistics import counted
from services.health.domain.subjects import Kind
from services.health.domain.tally import EMPTY, Tally
from services.health.domain.thresholds import Thresholds


class Breaker(Struct, frozen=True):
    """Everything that `step` reads and writes: what the catalogue says, the durable state, the counts."""

    kind: Kind
    configured: int
    thresholds: Thresholds
    health: Health
    tally: Tally = EMPTY

    @property
    def allowed(self) -> int | None:
        """Slots that health allows now; None = no limit by health."""
        return allowed_slots(self.health.state, self.health.recovery_successes, self.configured)


Stepped = tuple[Breaker, tuple[Event, ...]]

# Failures of one family in a row that open a closed circuit (HLT-8).
FAILURES_TO_OPEN: Mapping[Family, Callable[[Thresholds], int]] = MappingProxyType(
    {
        Family.ACCOUNT: lambda thresholds: 1,
        Family.CONNECT: lambda thresholds: thresholds.connect_failures,
        Family.MODEL: lambda thresholds: 1,
        Family.SERVER: lambda thresholds: thresholds.consecutive_failures,
        Family.CAPACITY: lambda thresholds: thresholds.capacity_failures,
    }
)


def declared(kind: Kind, wanted: Declared, disabled: bool, now: datetime) -> Stepped:
    """The first state of a subject: healthy, or disabled where the catalogue says so."""
    state = State.DISABLED if disabled else State.HEALTHY
    event = Event(history.DECLARED, None, state, 1, 1, 0, "declared", "", now)
    health = history.applied(None, event)
    assert health is not None
    return Breaker(kind, wanted.configured, wanted.thresholds, health), (event,)


def step(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """The breaker after one observation, and the events it caused, in order.

    What was observed in the future of `now` (a clock ahead of ours) is taken as observed now.
    """
    match observation:
        case Success():
            return _succeeded(breaker, observation, min(observation.at, now), now)
        case Failure():
            return _failed(breaker, observation, min(observation.at, now), now)
        case SupplyFailure():
            return _heard(breaker, observation, min(observation.at, now))
        case CooldownOver():
            until = breaker.health.cooldown_until
            if breaker.health.state is State.CIRCUIT_OPEN and until is not None and until <= now:
                return _move(breaker, Signal.COOLED, now, breaker.health.reason)
            return breaker, ()
        case Command():
            if (breaker.health.state, observation.signal) not in TABLE:
                return breaker, ()
            return _move(breaker, observation.signal, now, observation.reason, cooldown_s=breaker.thresholds.cooldown_s)
        case Declared():
            return _declared(breaker, observation, now)


def refuses(breaker: Breaker, signal: Signal) -> bool:
    """True when an operator's command has no meaning in the present state."""
    return (breaker.health.state, signal) not in TABLE


def _succeeded(breaker: Breaker, success: Success, at: datetime, now: datetime) -> Stepped:
    health, thresholds = breaker.health, breaker.thresholds
    if health.state in SHUT or (health.state in LADDER and success.epoch != health.epoch):
        return breaker, (_remark(breaker, history.STALE_IGNORED, "success", success.attempt_id, at),)
    tally = breaker.tally.succeeded(at, thresholds)
    breaker = Breaker(breaker.kind, breaker.configured, thresholds, health, tally)
    if health.state in LADDER:
        count = health.recovery_successes + 1
        return _move(breaker, RUNGS[count], at, "probe_succeeded", success.attempt_id, successes=count)
    return _judged(breaker, at, now, success.attempt_id, None)


def _failed(breaker: Breaker, failure: Failure, at: datetime, now: datetime) -> Stepped:
    health, thresholds = breaker.health, breaker.thresholds
    if health.state in SHUT or at < health.since:
        return breaker, (_remark(breaker, history.STALE_IGNORED, failure.code, failure.attempt_id, at),)
    breaker = structs.replace(breaker, tally=breaker.tally.failed(failure, at, thresholds))
    if health.state in LADDER:
        cooldown = _cooldown_s(failure, thresholds)
        return _move(breaker, Signal.FAILED, at, failure.code, failure.attempt_id, cooldown_s=cooldown)
    return _judged(breaker, at, now, failure.attempt_id, failure)


def _heard(breaker: Breaker, news: SupplyFailure, at: datetime) -> Stepped:
    """Escalation: the same code on enough Supplies within the window is a failure of the Channel itself (HLT-8)."""
    health, thresholds = breaker.health, breaker.thresholds
    if health.state in SHUT or at < health.since:
        return breaker, ()
    breaker = structs.replace(breaker, tally=breaker.tally.heard(news, at, thresholds))
    if breaker.tally.supplies_with(news.code) < thresholds.escalation_supplies:
        return breaker, ()
    signal = Signal.FAILED if health.state in LADDER else Signal.TRIPPED
    reason = f"escalation:{news.code}"
    return _move(breaker, signal, at, reason, news.attempt_id, cooldown_s=thresholds.cooldown_s)


def _judged(breaker: Breaker, at: datetime, now: datetime, attempt_id: str, failure: Failure | None) -> Stepped:
    """A closed circuit after one more outcome: open it, degrade it, restore it, or leave it."""
    tally, thresholds = breaker.tally, breaker.thresholds
    good, bad = counted(tally.window, now, thresholds.window_s)
    counts = good + bad >= thresholds.failure_rate_min
    rate = bad / (good + bad) if counts and bad else 0.0
    if failure is not None and tally.family_failures >= FAILURES_TO_OPEN[failure.family](thresholds):
        cooldown = _cooldown_s(failure, thresholds)
        return _move(breaker, Signal.TRIPPED, at, failure.code, attempt_id, cooldown_s=cooldown)
    if breaker.kind is Kind.SUPPLY and counts and rate >= thresholds.failure_rate:
        return _move(breaker, Signal.TRIPPED, at, "failure_rate", attempt_id, cooldown_s=thresholds.cooldown_s)
    if breaker.health.state is State.HEALTHY:
        if tally.failures >= thresholds.degraded_failures:
            return _move(breaker, Signal.WORSENED, at, failure.code if failure else "failures_in_a_row", attempt_id)
        if counts and rate >= thresholds.degraded_rate:
            return _move(breaker, Signal.WORSENED, at, "degraded_rate", attempt_id)
    elif tally.successes >= thresholds.degraded_successes and rate < thresholds.eased_rate:
        return _move(breaker, Signal.EASED, at, "successes_in_a_row", attempt_id)
    if failure is not None:
        return breaker, (_remark(breaker, history.OUTCOME, failure.code, attempt_id, at),)
    return breaker, ()


def _declared(breaker: Breaker, wanted: Declared, now: datetime) -> Stepped:
    """The catalogue's figures in force; a new number of slots is a change that everybody must hear of."""
    tally = breaker.tally
    if wanted.thresholds.window_s != breaker.thresholds.window_s:
        tally = structs.replace(tally, window=())  # its slots were cut for another window
    told = wanted.kind != history.RESIZED or wanted.configured != breaker.configured
    breaker = structs.replace(breaker, configured=wanted.configured, thresholds=wanted.thresholds, tally=tally)
    if not told:
        return breaker, ()
    health = breaker.health
    event = _event(breaker, wanted.kind, health.state, health.reason, "", now)
    event = replace(event, revision=health.revision + 1, cooldown_until=health.cooldown_until)
    return structs.replace(breaker, health=replace(health, revision=event.revision)), (event,)


def _move(
    breaker: Breaker,
    signal: Signal,
    at: datetime,
    reason: str,
    attempt_id: str = "",
    *,
    cooldown_s: float = 0.0,
    successes: int = 0,
) -> Stepped:
    """Follow the table. The new state is what the written event says it is."""
    health = breaker.health
    move = TABLE[health.state, signal]
    began = max(at, health.since)
    event = Event(
        kind=move.event,
        before=health.state,
        after=move.to,
        epoch=health.epoch + int(move.new_epoch),
        revision=health.revision + 1,
        recovery_successes=successes,
        reason=reason,
        attempt_id=attempt_id,
        at=began,
        cooldown_until=began + timedelta(seconds=cooldown_s) if move.to is State.CIRCUIT_OPEN else None,
    )
    after = history.applied(health, event)
    assert after is not None
    return structs.replace(breaker, health=after, tally=EMPTY if move.new_phase else breaker.tally), (event,)


def _event(breaker: Breaker, kind: str, after: State, reason: str, attempt_id: str, at: datetime) -> Event:
    health = breaker.health
    return Event(
        kind, health.state, after, health.epoch, health.revision, health.recovery_successes, reason, attempt_id, at
    )


def _remark(breaker: Breaker, kind: str, reason: str, attempt_id: str, at: datetime) -> Event:
    return _event(breaker, kind, breaker.health.state, reason, attempt_id, at)


def _cooldown_s(failure: Failure, thresholds: Thresholds) -> float:
    """The whole cooldown of a trigger, in seconds."""
    if failure.family is Family.ACCOUNT:
        return thresholds.account_cooldown_s
    if failure.family is Family.CAPACITY:
        return max(failure.retry_after_s or 0.0, thresholds.capacity_cooldown_s)
    return thresholds.cooldown_s

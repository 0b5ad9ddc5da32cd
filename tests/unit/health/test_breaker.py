"""The breaker by property: any history, any thresholds."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from services.health.domain.breaker import Breaker, declared, refuses, step
from services.health.domain.events import DECLARED, REMARKS, RETIRED, Event, applied, fold
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
from services.health.domain.states import COMMANDS, TABLE, Signal, State
from services.health.domain.subjects import Kind
from services.health.domain.thresholds import Thresholds
from tests.support.worlds import START

AGES = st.integers(-30, 5).map(lambda seconds: timedelta(seconds=seconds))
OBSERVATIONS = st.one_of(
    st.builds(lambda epoch, age: ("success", epoch, age), st.integers(-1, 0), AGES),
    st.builds(lambda family, age: ("failure", family, age), st.sampled_from(Family), AGES),
    st.builds(lambda supply, age: ("heard", supply, age), st.sampled_from(["a/x", "a/y"]), AGES),
    st.builds(lambda signal: ("command", signal), st.sampled_from(sorted(COMMANDS))),
    st.builds(lambda slots, kind: ("declared", slots, kind), st.integers(0, 9), st.sampled_from(["resized", DECLARED])),
    st.just(("cooldown over",)),
    st.just(("retired",)),
)
HISTORIES = st.lists(st.tuples(st.sampled_from([0, 1, 20, 61, 301]), OBSERVATIONS), max_size=40)


def made(told: tuple, breaker: Breaker, now) -> Observation:
    """The observation of a drawn tuple."""
    match told:
        case ("success", epoch, age):
            return Success("s", breaker.health.epoch + epoch, now + age)
        case ("failure", family, age):
            return Failure("f", now + age, family.value, family, 2.0)
        case ("heard", supply, age):
            return SupplyFailure("h", supply, now + age, "provider_error")
        case ("command", signal):
            return Command(Signal(signal), "operator")
        case ("declared", slots, kind):
            return Declared(slots, breaker.thresholds, kind)
        case ("retired",):
            return Declared(breaker.configured, breaker.thresholds, RETIRED)
    return CooldownOver()


@given(st.sampled_from(Kind), HISTORIES)
def test_folding_the_events_gives_the_state(kind: Kind, history: list) -> None:
    """HLT-12: after any history the folded events are the state; revisions rise by one; the epoch never falls."""
    now = START
    breaker, events = declared(kind, Declared(4, Thresholds()), False, now)
    written: list[Event] = list(events)
    for seconds, told in history:
        now += timedelta(seconds=seconds)
        before = breaker.health
        breaker, events = step(breaker, made(told, breaker, now), now)
        written += events
        assert fold(written) == breaker.health
        assert breaker.health.revision == before.revision + sum(event.kind not in REMARKS for event in events)
        assert breaker.health.epoch >= before.epoch
        assert (breaker.health.cooldown_until is None) == (breaker.health.state is not State.CIRCUIT_OPEN)
        assert before.since <= breaker.health.since <= max(now, before.since)


@given(st.sampled_from(Kind), HISTORIES)
def test_equal_histories_give_equal_states(kind: Kind, history: list) -> None:
    """VER-1: the step is deterministic, and takes time and chance as arguments only."""
    ends = []
    for _ in range(2):
        now = START
        breaker, _ = declared(kind, Declared(4, Thresholds()), False, now)
        for seconds, told in history:
            now += timedelta(seconds=seconds)
            breaker, _ = step(breaker, made(told, breaker, now), now)
        ends.append(breaker)
    assert ends[0] == ends[1]


def test_a_history_with_a_hole_is_refused() -> None:
    """HLT-12: folding notices a missing, repeated or edited event."""
    breaker, first = declared(Kind.SUPPLY, Declared(4, Thresholds()), False, START)
    after, opened = step(breaker, Command(Signal.FORCED_OPEN, "x"), START)
    _, probing = step(after, CooldownOver(), START + timedelta(hours=1))
    assert fold([*first, *opened, *probing])
    for broken in ([*first, *probing], [*first, *first], [*first, replace(opened[0], revision=9)]):
        with pytest.raises(ValueError, match="cannot follow"):
            fold(broken)
    assert applied(None, replace(first[0], kind="stale_ignored")) is None


def supply(**overrides: float) -> Breaker:
    """A healthy Supply."""
    return declared(Kind.SUPPLY, Declared(4, Thresholds.of(**overrides)), False, START)[0]


def run(breaker: Breaker, outcomes: str, *, gap_s: float = 0.0, family: Family = Family.SERVER) -> Breaker:
    """Let it observe a word of outcomes: s is a success, f a failure, r a rate limit."""
    now = START
    for letter in outcomes:
        now += timedelta(seconds=gap_s)
        if letter == "s":
            observation: Observation = Success("x", breaker.health.epoch, now)
        else:
            observation = Failure("x", now, letter, Family.CAPACITY if letter == "r" else family)
        breaker, _ = step(breaker, observation, now)
    return breaker


@pytest.mark.parametrize(
    "outcomes, state, reason",
    [
        ("fff", State.CIRCUIT_OPEN, "f"),
        ("ffsf", State.DEGRADED, "f"),
        ("fsfsfs", State.HEALTHY, "declared"),
        ("frfrf", State.DEGRADED, "r"),
        ("rrrrr", State.CIRCUIT_OPEN, "r"),
        ("rrrrsr", State.DEGRADED, "r"),
        ("sf" * 10, State.CIRCUIT_OPEN, "failure_rate"),
        ("fs" * 10, State.CIRCUIT_OPEN, "failure_rate"),
        ("sf" * 9 + "s", State.HEALTHY, "declared"),
        ("sssf" * 5, State.DEGRADED, "degraded_rate"),
        ("ssssf" * 4, State.DEGRADED, "degraded_rate"),
        ("ssssssf" * 4, State.HEALTHY, "declared"),
    ],
)
def test_supply_triggers(outcomes: str, state: State, reason: str) -> None:
    """HLT-8, HLT-9: three provider failures or five rate limits in a row open; half of twenty opens; 20 % degrades."""
    health = run(supply(), outcomes).health
    assert (health.state, health.reason) == (state, reason)


def test_the_window_forgets() -> None:
    """HLT-8: a rate counts outcomes of the last 60 s only."""
    breaker = supply(degraded_failures=99, consecutive_failures=99)
    assert run(breaker, "sf" * 15, gap_s=3.5).health.state is State.HEALTHY
    assert run(breaker, "sf" * 15, gap_s=2.5).health.state is State.CIRCUIT_OPEN


def test_degraded_waits_for_a_low_rate() -> None:
    """HLT-9: five successes restore only with the rate under 10 %, once twenty outcomes are there."""
    breaker = run(supply(), "sssf" * 5)
    assert breaker.health.state is State.DEGRADED
    assert run(breaker, "s" * 5).health.state is State.DEGRADED
    assert run(breaker, "s" * 30).health.state is State.DEGRADED
    assert run(breaker, "s" * 31).health.state is State.HEALTHY


def test_a_channel_is_not_opened_by_a_rate() -> None:
    """HLT-8: the rate is a trigger of Supplies; a Channel opens by account, connection and escalation alone."""
    channel = declared(Kind.CHANNEL, Declared(4, Thresholds()), False, START)[0]
    after = run(channel, "sf" * 20, family=Family.CONNECT)
    assert after.health.state is State.DEGRADED


def test_a_model_that_is_missing_opens_at_once() -> None:
    """HLT-8: model not found opens the Supply on the first."""
    assert run(supply(), "f", family=Family.MODEL).health.state is State.CIRCUIT_OPEN


@given(st.integers(1, 4), st.sampled_from(list(Family)))
def test_any_failure_on_the_ladder_opens(successes: int, family: Family) -> None:
    """HLT-4: no threshold applies in probing and recovering, whatever the failure."""
    breaker, _ = step(supply(), Command(Signal.FORCED_OPEN, "x"), START)
    now = START + timedelta(seconds=60)
    breaker, _ = step(breaker, CooldownOver(), now)
    for _ in range(successes):
        breaker, _ = step(breaker, Success("s", breaker.health.epoch, now), now)
    failed, events = step(breaker, Failure("f", now, "x", family, 90.0), now)
    assert [event.kind for event in events] == ["reopened"]
    whole = {Family.ACCOUNT: 300, Family.CAPACITY: 90}.get(family, 60)
    assert failed.health.cooldown_until == now + timedelta(seconds=whole)
    assert failed.health.epoch == breaker.health.epoch + 1


def test_escalation_reopens_a_channel_on_the_ladder() -> None:
    """HLT-4, HLT-8: escalation is a failure of the Channel itself; one Supply alone is none."""
    channel = declared(Kind.CHANNEL, Declared(4, Thresholds()), False, START)[0]
    channel, _ = step(channel, Command(Signal.FORCED_OPEN, "x"), START)
    now = START + timedelta(seconds=60)
    channel, _ = step(channel, CooldownOver(), now)
    for name in ("a/x", "a/x"):
        channel, events = step(channel, SupplyFailure("h", name, now, "provider_error"), now)
        assert (channel.health.state, events) == (State.PROBING, ())
    channel, _ = step(channel, SupplyFailure("h", "a/y", now, "provider_error"), now)
    assert channel.health.state is State.CIRCUIT_OPEN


def test_commands_follow_the_table() -> None:
    """HLT-11: a command that the table does not know is refused and moves nothing."""
    for state in State:
        for signal in COMMANDS:
            breaker = supply()
            breaker = structs.replace(breaker, health=replace(breaker.health, state=state))
            after, events = step(breaker, Command(signal, "x"), START)
            assert refuses(breaker, signal) == ((state, signal) not in TABLE) == (not events)
            assert (after != breaker) == bool(events)


def test_a_clock_ahead_of_ours_is_no_future() -> None:
    """HLT-6: what was observed in the future counts as observed now."""
    late, events = step(supply(), Failure("f", START + timedelta(hours=1), "x", Family.MODEL), START)
    assert events[0].at == START
    assert late.health.cooldown_until == START + timedelta(seconds=60)

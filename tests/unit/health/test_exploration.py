"""VER-2: every small history of the breaker is tried, and every known way to break it is caught."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from msgspec import structs

from services.health.domain.breaker import Breaker, Stepped, step
from services.health.domain.events import OUTCOME, STALE_IGNORED
from services.health.domain.ladder import QUARTERS, allowed_slots
from services.health.domain.observations import Command, CooldownOver, Failure, Observation, Success
from services.health.domain.states import LADDER, Signal, State
from tests.unit.health.exploration import Rules, explore

Step = Callable[[Breaker, Observation, datetime], Stepped]


@pytest.mark.parametrize("slots, in_flight", [(1, 3), (2, 3), (3, 3), (4, 4), (8, 3)])
def test_no_history_breaks_the_breaker(slots: int, in_flight: int) -> None:
    """VER-2, HLT-1, HLT-2, HLT-3, HLT-4, HLT-6, HLT-7, HLT-11, HLT-12: no order of events breaks an invariant.

    Checked in every state: one probe at a time; the rung's limit; only present-epoch successes climb, one rung each;
    a failure on the ladder opens with the whole cooldown; the old is ignored and written; the epoch rises where a
    circuit opens; the events fold to the state; and from everywhere there is a way back to healthy.
    """
    report = explore(slots, in_flight)
    assert (report.breach, report.path) == ("", ())
    assert report.nodes > 1000


def unfenced(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Takes every success for one of the present epoch."""
    if isinstance(observation, Success):
        observation = structs.replace(observation, epoch=breaker.health.epoch)
    return step(breaker, observation, now)


def forgetful(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Keeps the count of successes when it reopens."""
    after, events = step(breaker, observation, now)
    if after.health.state is State.CIRCUIT_OPEN and breaker.health.state in LADDER:
        kept = breaker.health.recovery_successes
        events = tuple(replace(event, recovery_successes=kept) for event in events)
        after = structs.replace(after, health=replace(after.health, recovery_successes=kept))
    return after, events


def patient(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Applies the opening threshold on the ladder too."""
    if isinstance(observation, Failure) and breaker.health.state in LADDER and observation.at >= breaker.health.since:
        tally = breaker.tally.failed(observation, observation.at, breaker.thresholds)
        if tally.family_failures < breaker.thresholds.consecutive_failures:
            return structs.replace(breaker, tally=tally), ()
    return step(breaker, observation, now)


def stingy(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Reopens for half of the cooldown."""
    after, events = step(breaker, observation, now)
    until = after.health.cooldown_until
    if until is not None and breaker.health.state in LADDER:
        until -= (until - after.health.since) / 2
        events = tuple(replace(event, cooldown_until=until) for event in events)
        after = structs.replace(after, health=replace(after.health, cooldown_until=until))
    return after, events


def resentful(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Counts failures from before the present state."""
    if isinstance(observation, Failure):
        observation = replace(observation, at=max(observation.at, breaker.health.since))
    return step(breaker, observation, now)


def eager(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Goes to recovering after one success."""
    after, events = step(breaker, observation, now)
    if breaker.health.state is State.PROBING and after.health.recovery_successes == 1:
        events = tuple(replace(event, after=State.RECOVERING, recovery_successes=2) for event in events)
        health = replace(after.health, state=State.RECOVERING, recovery_successes=2, since=events[0].at)
        after = structs.replace(after, health=health)
    return after, events


def impatient(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Probes before the cooldown is over."""
    if isinstance(observation, CooldownOver) and breaker.health.cooldown_until is not None:
        breaker = structs.replace(breaker, health=replace(breaker.health, cooldown_until=now))
    return step(breaker, observation, now)


def epochless(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Reopens without a new epoch."""
    after, events = step(breaker, observation, now)
    if after.health.state is State.CIRCUIT_OPEN and breaker.health.state in LADDER:
        events = tuple(replace(event, epoch=breaker.health.epoch) for event in events)
        after = structs.replace(after, health=replace(after.health, epoch=breaker.health.epoch))
    return after, events


def trusting(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Closes an open circuit on a success."""
    if isinstance(observation, Success) and breaker.health.state is State.CIRCUIT_OPEN:
        return step(breaker, Command(Signal.SWITCHED_ON, "success"), now)
    return step(breaker, observation, now)


def silent(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Ignores without writing it down."""
    after, events = step(breaker, observation, now)
    return after, tuple(event for event in events if event.kind != STALE_IGNORED)


def lossy(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Changes without an event: the history no longer folds to the state."""
    after, events = step(breaker, observation, now)
    return after, tuple(event for event in events if event.kind in (OUTCOME, STALE_IGNORED))


def stuck(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Never probes."""
    return (breaker, ()) if isinstance(observation, CooldownOver) else step(breaker, observation, now)


def hasty(breaker: Breaker, observation: Observation, now: datetime) -> Stepped:
    """Opens on the first failure, whatever the threshold."""
    if isinstance(observation, Failure) and breaker.health.state is State.HEALTHY:
        return step(breaker, Command(Signal.FORCED_OPEN, "failure"), now)
    return step(breaker, observation, now)


STALE = "a success from before the trip moved something"
REOPENS = "a failure on the ladder must open at once with the whole cooldown"
STEPS: list[tuple[Step, str]] = [
    (unfenced, STALE),
    (trusting, STALE),
    (silent, STALE),
    (forgetful, REOPENS),
    (patient, REOPENS),
    (stingy, REOPENS),
    (resentful, "a failure from before the present state counted"),
    (eager, "the ladder was not climbed by one rung"),
    (impatient, "moved it too early"),
    (epochless, "the epoch rises where a circuit opens"),
    (lossy, "folding the events does not give the state"),
    (stuck, "nobody may probe"),
    (hasty, "opened below the threshold"),
]


@pytest.mark.parametrize("mutant, breach", STEPS, ids=[mutant.__name__ for mutant, _ in STEPS])
def test_a_wrong_step_is_caught(mutant: Step, breach: str) -> None:
    """VER-2: each known mistake in the step gives a counterexample to the law that it breaks."""
    report = explore(4, 2, Rules(step=mutant))
    assert breach in report.breach, f"{mutant.__doc__} went unnoticed in {report.nodes} states"


def unclamped(state: State, successes: int, slots: int) -> int | None:
    """Rounds up without leaving a slot closed."""
    if state is State.RECOVERING:
        return -(-slots * QUARTERS[successes] // 4)
    return allowed_slots(state, successes, slots)


def unguarded(state: State, successes: int, slots: int) -> int | None:
    """Admits any number of probes."""
    return None if state is State.PROBING else allowed_slots(state, successes, slots)


@pytest.mark.parametrize("slots, mutant", [(2, unclamped), (3, unclamped), (4, unguarded)])
def test_a_wrong_limit_is_caught(slots: int, mutant: Callable[[State, int, int], int | None]) -> None:
    """VER-2: a ladder that rounds into the last slot, or admits two probes, gives a counterexample."""
    assert explore(slots, 3, Rules(allowed=mutant)).breach


def test_counting_an_outcome_twice_is_caught() -> None:
    """VER-2, HLT-13: without idempotency by Attempt a repeated report moves the breaker."""
    assert explore(4, 2, Rules(once=False)).breach

"""The common time in one process: told now and then, going on by itself, never back."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from libs.host.common_time import CommonClock
from libs.host.world import RisingUlids
from libs.kernel.world import World
from tests.support.worlds import START, SteeredClock

HOUR_S = 3600.0


def told(machine: SteeredClock, seconds: float = 0.0, at: datetime = START) -> CommonClock:
    """A clock that was told that time at once."""
    clock = CommonClock(machine)
    clock.hear(at + timedelta(seconds=seconds), machine.monotonic(), machine.monotonic())
    return clock


def off_s(clock: CommonClock, machine: SteeredClock) -> float:
    """How far it is ahead of the time that has really passed since the start."""
    return (clock.now() - START).total_seconds() - machine.monotonic()


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_a_step_of_the_machine_is_not_seen(step_s: float) -> None:
    """VER-6: whatever becomes of the wall, time goes on by the monotonic clock; others are told what the wall says."""
    machine = SteeredClock()
    clock = told(machine)
    machine.advance(10)
    machine.off_s = step_s
    assert off_s(clock, machine) == 0.0
    assert clock.now().tzinfo is UTC
    world = World(clock, RisingUlids(), random.Random(1), machine)
    assert world.outside() == machine.now()
    assert World(clock, RisingUlids(), random.Random(1)).outside() == clock.now()


def test_a_machine_that_is_an_hour_off_is_told_so_at_its_start() -> None:
    """VER-6: nothing was done by its wall yet, so it may even go back."""
    machine = SteeredClock(off_s=HOUR_S)
    assert CommonClock(machine).now() == START + timedelta(seconds=HOUR_S)
    assert told(machine).now() == START


def test_time_that_has_passed_is_followed_at_once() -> None:
    """VER-6: a step forward of the database, or a machine that slept."""
    machine = SteeredClock()
    clock = told(machine)
    clock.hear(START + timedelta(seconds=HOUR_S), 0.0, 0.0)
    assert off_s(clock, machine) == HOUR_S


def test_who_is_ahead_waits_at_half_the_pace() -> None:
    """VER-6: it never goes back, and has come to what it was told after twice that time."""
    machine = SteeredClock()
    clock = told(machine, 8.0)
    clock.hear(START, 0.0, 0.0)
    offs = []
    for _ in range(20):
        offs.append(off_s(clock, machine))
        machine.advance(1)
    assert offs[:4] == [8.0, 7.5, 7.0, 6.5]
    assert offs[15:] == [0.5, 0.0, 0.0, 0.0, 0.0]


def test_a_step_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """VER-6: the log names each step of more than a second, not every look of the hours in which it is made up for
    at half the pace."""
    machine = SteeredClock()
    clock = told(machine)
    for look in range(1, 200):
        machine.advance(5)
        clock.hear(START + timedelta(seconds=2.5 * look), machine.monotonic(), machine.monotonic())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    clock.hear(clock.now() - timedelta(seconds=60), machine.monotonic(), machine.monotonic())
    clock.hear(clock.now() + timedelta(seconds=60), machine.monotonic(), machine.monotonic())
    assert len(caplog.records) == 3


def test_the_moment_of_an_answer_lies_between_question_and_hearing() -> None:
    """VER-6: half of the way counts, and what has passed since it was heard."""
    machine = SteeredClock()
    machine.advance(4)
    clock = CommonClock(machine)
    clock.hear(START + timedelta(seconds=2), 1.0, 3.0)
    assert off_s(clock, machine) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_it_never_goes_back_whatever_it_is_told(seed: int) -> None:
    """VER-6: told anything, at any pace; once it is told the truth it comes back to it."""
    rng, machine = random.Random(seed), SteeredClock()
    clock = told(machine)
    before = clock.now()
    for _ in range(300):
        machine.advance(rng.uniform(0.0, 5.0))
        machine.off_s = rng.uniform(-HOUR_S, HOUR_S)
        if rng.random() < 0.5:
            at = machine.monotonic()
            clock.hear(START + timedelta(seconds=at + rng.uniform(-60.0, 60.0)), at, at)
        assert clock.now() >= before
        before = clock.now()
    for _ in range(60):
        at = machine.monotonic()
        clock.hear(START + timedelta(seconds=at), at, at)
        machine.advance(5.0)
    assert abs(off_s(clock, machine)) < 1e-3

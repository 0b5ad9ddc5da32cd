"""The loop around background work, under a clock that only moves when told."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from libs.faults.fault import Fault
from libs.host.ticker import Ticker
from libs.host.world import RisingUlids
from libs.kernel.world import World


class HandClock:
    """A clock whose sleepers wait until the test lets them go; `pauses` holds what they asked for."""

    def __init__(self) -> None:
        self.pauses: asyncio.Queue[tuple[float, asyncio.Event]] = asyncio.Queue()
        self.at = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self.pauses.put_nowait((seconds, event))
        await event.wait()

    async def next_pause(self) -> tuple[float, Callable[[], None]]:
        """The next pause that somebody begins, and how to end it."""
        seconds, event = await self.pauses.get()
        return seconds, event.set


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> World:
    return World(clock=clock, ids=RisingUlids(), rng=random.Random(7))


class Work:
    """A tick that plays a list of outcomes: a value to return or an exception to raise; then returns None for ever."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.calls = 0
        self.called = asyncio.Event()

    async def __call__(self) -> object:
        self.calls += 1
        self.called.set()
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def test_ticks_at_once_then_after_every_interval(clock: HandClock, world: World) -> None:
    """The first tick comes at start, the next after the interval with at most the jitter asked for."""
    work = Work()
    ticker = Ticker("t", work, world=world, interval_s=10, jitter=0.1)
    ticker.start()
    for count in (1, 2, 3):
        seconds, end = await clock.next_pause()
        assert work.calls == count
        assert 9 <= seconds <= 11
        end()
    await ticker.stop()


async def test_a_long_tick_is_followed_by_a_longer_pause(clock: HandClock, world: World) -> None:
    """A tick that takes a minute, a twentieth of the time at most, comes again after nineteen."""

    async def work() -> None:
        clock.at += 60

    ticker = Ticker("t", work, world=world, interval_s=10, jitter=0, most_share=0.05)
    ticker.start()
    seconds, _ = await clock.next_pause()
    assert seconds == pytest.approx(19 * 60)
    await ticker.stop()


async def test_more_work_is_taken_at_once(clock: HandClock, world: World) -> None:
    """A tick that returns True is called again without a pause."""
    work = Work(True, True, False)
    ticker = Ticker("t", work, world=world, interval_s=10)
    ticker.start()
    await clock.next_pause()
    assert work.calls == 3
    await ticker.stop()


async def test_a_wake_ends_the_pause(clock: HandClock, world: World) -> None:
    """A hint that there is work calls the tick without waiting for the clock."""
    work = Work()
    ticker = Ticker("t", work, world=world, interval_s=3600)
    ticker.start()
    await clock.next_pause()
    ticker.wake()
    await clock.next_pause()
    assert work.calls == 2
    await ticker.stop()


async def test_a_wake_during_a_tick_is_not_lost(clock: HandClock, world: World) -> None:
    """A hint that comes while a tick runs leads to one more tick, for the tick may have looked too early."""
    ticker: Ticker
    calls = 0

    async def tick() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            ticker.wake()

    ticker = Ticker("t", tick, world=world, interval_s=3600)
    ticker.start()
    await clock.next_pause()
    assert calls == 2
    await ticker.stop()


@pytest.mark.parametrize("error", [ValueError("bug"), Fault.of("peer_unavailable"), asyncio.CancelledError()])
async def test_survives_failures_and_backs_off(clock: HandClock, world: World, error: BaseException) -> None:
    """A failing tick never ends the loop; its pause doubles up to the limit and falls back after a success."""
    work = Work(error, error, error, error, None)
    ticker = Ticker("t", work, world=world, interval_s=1, jitter=0, backoff_max_s=5)
    ticker.start()
    pauses = []
    for _ in range(5):
        seconds, end = await clock.next_pause()
        pauses.append(seconds)
        end()
    assert pauses == [2, 4, 5, 5, 1]
    await ticker.stop()


async def test_a_wake_does_not_shorten_a_backoff(clock: HandClock, world: World) -> None:
    """A failing machine is not hammered because there is work."""
    work = Work(ValueError("bug"))
    ticker = Ticker("t", work, world=world, interval_s=1, jitter=0)
    ticker.start()
    _, end = await clock.next_pause()
    ticker.wake()
    for _ in range(50):  # turns of the loop, many more than a woken ticker needs
        await asyncio.sleep(0)
    assert work.calls == 1
    end()
    await clock.next_pause()
    assert work.calls == 2
    await ticker.stop()


async def test_stop_lets_the_tick_in_hand_finish(world: World) -> None:
    """OPS-4: work in hand is finished when a context drains."""
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def tick() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    ticker = Ticker("t", tick, world=world, interval_s=1)
    ticker.start()
    await begun.wait()
    stopping = asyncio.create_task(ticker.stop())
    await asyncio.sleep(0)
    may_end.set()
    await stopping
    assert ended.is_set()


async def test_stop_cancels_a_tick_that_hangs(world: World) -> None:
    """OPS-4: a hung tick delays the drain by the grace period and no longer; its `finally` has run by then."""
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def tick() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    ticker = Ticker("t", tick, world=world, interval_s=1, grace_s=0.01)
    ticker.start()
    await begun.wait()
    await ticker.stop()
    assert cleaned.is_set()


async def test_a_hung_tick_is_ended_by_its_timeout(clock: HandClock, world: World) -> None:
    """A tick that never returns counts as a failure once `timeout_s` is over."""

    async def tick() -> None:
        await asyncio.Event().wait()

    ticker = Ticker("t", tick, world=world, interval_s=1, timeout_s=0.01)
    ticker.start()
    await clock.next_pause()
    assert ticker.failures == 1
    await ticker.stop()


async def test_stop_without_start_is_harmless(world: World) -> None:
    """A context that failed to start can still be stopped."""
    work: Callable[[], Awaitable[object]] = Work()
    await Ticker("t", work, world=world, interval_s=1).stop()

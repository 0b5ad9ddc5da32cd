"""Ids of the real world."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC

from ulid import ULID

from libs.host.world import RisingUlids, real_world


def test_ids_rise_within_a_millisecond_and_when_the_clock_steps_back() -> None:
    """Ids sort by the time of their making, whatever the wall clock does."""
    times = iter([1000, 1000, 1000, 999, 1, 1001])
    ids = RisingUlids(now_ms=lambda: next(times))
    made = [ids.ulid() for _ in range(6)]
    assert made == sorted(set(made))
    assert ULID.from_str(made[-1]).milliseconds == 1001


def test_ids_survive_the_end_of_a_milliseconds_randomness() -> None:
    """An id never repeats, even if the random part of a millisecond is used up."""
    ids = RisingUlids(now_ms=lambda: 5, entropy=lambda count: b"\xff" * count)
    first, second = ids.ulid(), ids.ulid()
    assert first < second


def test_ids_from_many_threads_are_distinct() -> None:
    """Threads share one source without making the same id twice."""
    ids = RisingUlids()
    with ThreadPoolExecutor(8) as pool:
        made = [made for chunk in pool.map(lambda _: [ids.ulid() for _ in range(500)], range(8)) for made in chunk]
    assert len(set(made)) == 4000
    assert all(len(one) == 26 for one in made)


def test_the_clock_is_aware() -> None:
    """Times on record are in UTC and say so."""
    world = real_world()
    assert world.clock.now().tzinfo is UTC
    assert world.clock.monotonic() <= world.clock.monotonic()

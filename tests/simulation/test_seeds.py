"""A few worlds in every test run; `make sim SEEDS=1000` plays more of them."""

import pytest

from tests.simulation.misfortune import Temper
from tests.simulation.providers import Mood
from tests.simulation.simulate import play
from tests.simulation.world import Planted

SEEDS = range(1, 9)
SLOW = Mood("slow", {"slow_taken": 1.0})
DYING_ADAPTER = Temper(4.0, {"kill": 1.0, "mood": 1.0}, (SLOW,), {"provider_adapter": 1.0})


@pytest.mark.parametrize("seed", SEEDS)
def test_no_law_is_broken(seed: int) -> None:
    """VER-4, VER-7: whatever this seed does to processes, wire, database and providers, every checker is content."""
    report = play(seed)
    assert not report.breaches, report.words()


@pytest.mark.parametrize("seed", [10, 11])
def test_a_slow_provider_gets_no_second_job_when_the_adapter_dies(seed: int) -> None:
    """ATT-6: while the provider may still take the job, its absence from the records proves nothing."""
    report = play(seed, Planted(temper=DYING_ADAPTER))
    assert not report.breaches, report.words()


def test_a_seed_replays_its_world() -> None:
    """VER-4: seed and commit give the same story, to the last event, also after another world was played."""
    first = play(3)
    play(7)
    again = play(3)
    assert (again.digest, again.virtual_s, again.counts) == (first.digest, first.virtual_s, first.counts)

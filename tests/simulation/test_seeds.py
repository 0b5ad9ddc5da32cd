"""A few worlds in every test run; `make sim SEEDS=1000` plays more of them."""

import pytest

from tests.simulation.simulate import play

SEEDS = (*range(1, 15),)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_law_is_broken(seed: int) -> None:
    """VER-4, VER-7: whatever this seed does to processes, wire, database and providers, every checker is content."""
    report = play(seed)
    assert not report.breaches, report.words()


def test_a_seed_replays_its_world() -> None:
    """VER-4: seed and commit give the same story, to the last event, also after another world was played."""
    first = play(4)
    play(5)
    again = play(4)
    assert (again.digest, again.virtual_s, again.counts) == (first.digest, first.virtual_s, first.counts)

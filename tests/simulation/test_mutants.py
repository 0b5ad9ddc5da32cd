"""Every planted fault is noticed by a checker within a few worlds: the proof that the checkers see what they claim."""

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.simulate import play

TRIES = 40


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    """VER-4: without this guard a law is seen broken within forty worlds."""
    mutant = MUTANTS[name]
    for seed in range(mutant.seed, mutant.seed + TRIES):
        if mutant.laws & play(seed, mutant.planted).breaches.keys():
            return
    raise AssertionError(f"nobody noticed that {name} was taken away in {TRIES} worlds")

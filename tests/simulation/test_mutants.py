"""Every planted fault is noticed by a checker within a few worlds: the proof that the checkers see what they claim.

Each begins with a seed that saw it; where the product has changed since, the next ones are tried: every second to every
twentieth world of its kind sees it.
"""

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.simulate import play

TRIES = 120


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    """VER-4: without this guard a law is seen broken within a hundred and twenty worlds."""
    mutant = MUTANTS[name]
    for seed in range(mutant.seed, mutant.seed + TRIES):
        if mutant.laws & play(seed, mutant.planted).breaches.keys():
            return
    raise AssertionError(f"nobody noticed that {name} was taken away in {TRIES} worlds")

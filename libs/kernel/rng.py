"""Chance as a port, so that a seed replays it."""

from typing import Protocol


class Rng(Protocol):
    """A source of randomness for jitter and sampling; never for secrets."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """A float between `low` and `high`."""
        ...

"""Who is held from new Attempts. One contract suite proves every implementation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

PAUSED = {"flag": "paused"}
"""Metadata of the Fault `conflict` by which a write with `unless_stopped` is refused: other conflicts have others."""


class Pausing(Protocol):
    """A durable flag beside the state. Ended and unknown Tasks are left out; doing either again changes nothing.

    Law: from the moment that `pause` returns no write with `unless_stopped` goes through; one that was committed before
    is an Attempt like any other, and its Task is followed.
    """

    async def pause(self, ends: Mapping[str, datetime]) -> None:
        """Hold these Tasks, by id. One that waits in the queue is due at the moment given, the end of its time for new
        Attempts, and no hint and no scan wakes it before."""
        ...

    async def unpause(self, task_ids: Sequence[str], now: datetime) -> None:
        """Let them go on. One that waits in the queue is due at once, in its old place."""
        ...

"""What a process found when it last looked at a Run, so that it need not read it whole again to find the same.

Laws of this file:
- it is a memory and nothing more: a process that begins, or has forgotten, looks at every live Run whole;
- what was found is true of one revision: whoever writes the Run, here or elsewhere, makes it unknown;
- it is not believed for ever: a database may be put back to where a revision says something else.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from libs.kernel.rng import Rng
from services.runs.domain.run import Run

LONGEST = timedelta(minutes=5)
"""After at most so long a Run is looked at whole, whatever is remembered of it."""

T = TypeVar("T")


class Memory(Generic[T]):
    """By Run: what was found at a revision, and until when it holds."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._found: dict[str, tuple[int, datetime, T]] = {}

    def of(self, run_id: str, revision: int, now: datetime) -> T | None:
        """What was found at that revision; None if nothing was, or its time is over."""
        known = self._found.get(run_id)
        return known[2] if known is not None and known[0] == revision and now < known[1] else None

    def keep(self, run: Run, found: T, now: datetime, until: datetime | None = None) -> None:
        """Remember it, at most until then. Runs that were looked at together are not due together."""
        longest = now + LONGEST * self._rng.uniform(0.5, 1.0)
        self._found[run.id] = (run.revision, longest if until is None else min(until, longest), found)

    def forget_all_but(self, run_ids: Collection[str]) -> None:
        """Of these alone anything will be asked again."""
        for run_id in self._found.keys() - run_ids:
            del self._found[run_id]

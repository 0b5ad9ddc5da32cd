"""What the running checks read. One contract suite proves every implementation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from services.routing.domain.standing import Limits, Standing
from services.routing.domain.task import Attempt

Place = tuple[Any, ...]
"""Where a pass has come to: the key of its last row. A row that nobody touches keeps its place, so a pass sees it."""


class Part(StrEnum):
    """What a check walks through. Together they hold every row that may be wrong; what has ended is never read."""

    QUEUED = "queued"
    FOLLOWED = "followed"
    LIVE = "live"
    """Attempts that have not ended, with their Tasks."""
    UNTIMED = "untimed"
    """Open Tasks without a timer: those that were never claimed, and any that no claim would find."""


class StandingReader(Protocol):
    """Reads what the checks judge. Every answer is of one moment."""

    async def suspects(
        self, part: Part, after: Place | None, count: int, bounds: Limits
    ) -> tuple[Sequence[tuple[Standing, int]], Place | None]:
        """Of the next `count` rows of that part, those that may be wrong, each with the number of recovery predicates
        that match it; and the place to go on from, None at the end."""
        ...

    async def heads(self, now: datetime, since: datetime) -> Mapping[str, Standing]:
        """By line, the first Task that is due and free, if it has been so since then or longer.

        The lines: `ready`, those never claimed, by tag; `timer` and `followed`, by time; `parked MODEL KEY`, by
        tag, those that wait for the same, where the first has not looked since then.
        """
        ...

    async def owed(self, since: datetime, count: int) -> tuple[Attempt, ...]:
        """Attempts that ended before that and whose outcome health has not acknowledged, oldest end first."""
        ...

    async def unheld(self, lease_ids: Sequence[str], since: datetime) -> Mapping[str, str]:
        """Of these leases, those that no Attempt holds: of one that ended before `since`, with its Task's id, or of
        none at all, with an empty one."""
        ...

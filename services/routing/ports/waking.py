"""Who waits for what comes for many at once is parked, and woken by its turn. One contract suite proves every
implementation."""

from datetime import datetime
from typing import Protocol

Line = tuple[str, str, int]
"""(model, tenant, place of the class in `domain.fairness.WEIGHTS`)."""


class Waking(Protocol):
    """Makes parked Tasks due, so that the next claim takes them."""

    async def wake(self, count: int, now: datetime, looked_by: datetime) -> tuple[int, bool]:
        """Make parked Tasks due: of each group the first `count` by tag, of those that last looked by then.

        A group is one model and one last decision (`round_key`). So whoever waits for what only it needs is in nobody's
        way. (how many were woken, whether any is parked). With very many groups fewer of each.
        """
        ...

    async def wake_lines(
        self, count: int, now: datetime, looked_by: datetime, after: Line | None
    ) -> tuple[int, Line | None]:
        """The same for the first `count` of each line (tenant, model, class), whatever stands before them in the model:
        who is blocked there is not in their way (CAP-11).

        Some lines a call, in the order of their names, those after `after`. (how many were woken, the last line looked
        at, None once the last of all was). With very many lines fewer of each.
        """
        ...

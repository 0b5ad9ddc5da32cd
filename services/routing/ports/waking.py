"""Who waits for what comes for many at once is parked, and woken by its turn. One contract suite proves every
implementation."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

Line = tuple[str, str, int]
"""(model, tenant, place of the class in `domain.fairness.CLASS_WEIGHTS`)."""


@dataclass(frozen=True, slots=True)
class Pick:
    """So many of one line, of those that got the decision `round_key`."""

    line: Line
    round_key: str
    count: int

    @property
    def group(self) -> tuple[str, str, int, str]:
        """Whom it picks of."""
        return *self.line, self.round_key


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
        """The same for the first `count` of each line (tenant, model, class) by `domain.shares.due_at`, whatever stands
        before them in the model: who is blocked there is not in their way (CAP-11).

        Some lines a call, in the order of their names, those after `after`. (how many were woken, the last line looked
        at, None once the last of all was). With very many lines fewer of each.
        """
        ...

    async def wake_first(self, picks: Sequence[Pick], now: datetime) -> Sequence[int]:
        """Make parked Tasks due: of each pick its first ones by `domain.shares.due_at`. How many of each were woken.

        One that stands far behind others of its line, decided otherwise, may be missed; the scan finds it.
        """
        ...

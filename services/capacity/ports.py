"""What capacity needs: a store that decides atomically. One suite, tests/contract/capacity, proves every backend."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import HealthLimit, Level, Subject, Usage
from services.capacity.domain.pacing import SILENT, Feedback


@dataclass(frozen=True, slots=True)
class Figure:
    """A level and what is used of it."""

    level: Level
    usage: Usage


@dataclass(frozen=True, slots=True)
class Renewal:
    """What became of each lease asked for, in the order asked."""

    renewed: tuple[str, ...]
    lost: tuple[str, ...]


class CapacityStore(Protocol):
    """Levels and leases under one clock, the store's own.

    Every method is atomic and raises Fault `governance_backend_down` where the store is away; then nobody is admitted
    (CAP-12). Answers are those of `domain.ledger` and `domain.holding`.
    """

    def reserve(self, request: Request) -> Awaitable[Lease | Refusal]:
        """Decide all gates of all levels at once. A refusal changes no lease and no window.

        The views of health in the request are kept where they are newer than those known, also on a refusal.
        A second reservation with one id is answered by `holding.repeated`, whatever the gates say.
        Raises what `ledger.checked` and `holding.repeated` raise. A backend may gather concurrent calls into one
        statement, as long as each is decided as if alone, in some order.
        """
        ...

    async def renew(
        self, holder: str, lease_ids: Sequence[str], ttl: timedelta, taught: Sequence[Lease] = ()
    ) -> Renewal:
        """Prolong to `ttl` from now those that the holder still holds.

        `taught` are the same leases as their holder remembers them: a store that lost its memory learns those that had
        not lapsed, while it learns (CAP-9). Any other store takes no notice.
        """
        ...

    def release(
        self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT
    ) -> Awaitable[Lease | None]:
        """Give it back; None where it had ended or is another's, and then nothing is learned from it.

        `used_tokens` corrects the windows (CAP-6), `feedback` the pace of the Supply (`pacing.told`), both in the same
        atomic step.
        """
        ...

    async def figures(self) -> list[Figure]:
        """Every declared level at one moment, in the order of subjects; where thousands weigh in windows, those may be
        of a second before."""
        ...

    async def leases(self) -> list[Lease]:
        """Live leases, oldest first."""
        ...

    async def apply_levels(self, revision: int, levels: Sequence[Level]) -> int:
        """Declare all levels; the absent are retired, known health is kept. The catalogue revision in force.

        A revision older than the last is ignored.
        """
        ...

    async def hear(self, health: Mapping[Subject, HealthLimit]) -> None:
        """Keep what is newer than known; health of undeclared levels is ignored."""
        ...

    async def catalog_revision(self) -> int:
        """The catalogue revision in force, 0 before the first."""
        ...

    async def sweep(self) -> frozenset[Subject]:
        """Mark lapsed leases as ended and forget those that ended long ago; the levels that became freer."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...

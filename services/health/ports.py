"""What health needs: a store of records and history. One suite, tests/contract/health, proves every implementation."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from services.health.domain.breaker import Breaker
from services.health.domain.events import Event
from services.health.domain.observations import Outcome
from services.health.domain.subjects import Subject


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of one subject.

    `channel_id` is the Channel of a Supply, its own id for a Channel. `disabled` is the catalogue's last word, kept so
    that only a change of it switches. `sequence` is that of its newest event.
    """

    subject: Subject
    channel_id: str
    breaker: Breaker
    disabled: bool
    retired: bool
    sequence: int

    def advanced(self, breaker: Breaker, events: Sequence[Event]) -> "Record":
        """The record after a step."""
        return replace(self, breaker=breaker, sequence=self.sequence + len(events))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stored event: `sequence` rises by 1 within its subject, `position` rises over all subjects."""

    position: int
    subject: Subject
    sequence: int
    event: Event


class Outdated(Exception):
    """An optimistic unit was wrong in what it took for granted; nothing of it is stored."""


class OutcomeUnit(Protocol):
    """What outcomes need of a unit of work: everything in it is stored together, or nothing."""

    async def claim(self, outcomes: Sequence[Outcome]) -> frozenset[str]:
        """Take note of outcomes; the ids of the Attempts of which none was known. Call it before `lock`."""
        ...

    async def lock(self, subjects: Collection[Subject]) -> dict[Subject, Record]:
        """The records of these subjects, retired ones too, locked until the unit ends.

        Rows are locked in the order of `Subject`, whatever order is asked for. Unknown subjects are left out.
        """
        ...

    async def put(self, record: Record, events: Sequence[Event]) -> None:
        """Replace a locked record and append `events`, which end at `record.sequence`.

        Fault `revision_conflict` if the stored sequence is not the one that `events` follow.
        """
        ...


class HealthUnit(OutcomeUnit, Protocol):
    """One unit of work: everything in it is stored together, or nothing."""

    async def lock(self, subjects: Collection[Subject] | None) -> dict[Subject, Record]:
        """As in any unit; None = all."""
        ...

    async def add(self, record: Record, events: Sequence[Event]) -> None:
        """Store a new subject with its first events. Fault `conflict` if another unit has added it."""
        ...

    async def lock_catalog_revision(self) -> int:
        """The newest catalogue revision told, 0 before the first; other units that ask wait. Call it before `lock`."""
        ...

    async def set_catalog_revision(self, revision: int) -> None:
        """Remember it."""
        ...


class HealthStore(Protocol):
    """Records, outcomes and history. Every method raises Fault `governance_backend_down` where the store is away."""

    def unit(self) -> AbstractAsyncContextManager[HealthUnit]:
        """A unit of work, committed when the block ends and undone when it raises."""
        ...

    def optimistic(self) -> AbstractAsyncContextManager[OutcomeUnit]:
        """A unit of work that may go by what is remembered of records, and take every outcome for new.

        Raises `Outdated` when something else has written meanwhile, when an outcome was known, or when more is put than
        counts: nothing is stored then, and the work belongs into a `unit`.
        """
        ...

    async def records(self) -> list[Record]:
        """All records at one moment, in the order of their subjects, retired ones too."""
        ...

    async def cooled(self, now: datetime) -> list[Subject]:
        """Subjects whose circuit is open and whose cooldown is over."""
        ...

    async def events(self, subject: Subject | None, after: int, limit: int) -> list[Recorded]:
        """History with a position above `after`, oldest first, at most `limit`; of one subject or of all.

        Whoever goes on from the last position misses nothing: of all subjects, what follows a position that a unit
        still holds open is told only once that unit has ended.
        """
        ...

    async def forget_outcomes(self, before: datetime) -> int:
        """Delete outcomes observed before that time; how many. Their Attempts could be counted again."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...

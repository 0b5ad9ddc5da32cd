"""Units of work over remembered records: one statement where nothing else has written meanwhile.

Laws of this file:
- a row's version is the transaction that wrote it, whoever that was: no writer has to take part in counting versions;
- what is remembered is a guess that the statement proves or refuses. A refused or broken one forgets everything;
- where guesses keep failing (another replica is as busy with the same rows) they are made more and more seldom.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from libs.store.lane import Lane
from services.health.domain.events import Event
from services.health.domain.observations import Outcome
from services.health.domain.subjects import Subject
from services.health.ports import OutcomeUnit, Outdated, Record
from services.health.store.rows import outcome_values, record_of, tally_json
from services.health.store.tables import HEALTH

LONGEST_PAUSE = 64
"""Units between two guesses, at most."""
SETTLE = f"SELECT settle_outcomes({', '.join(f'${place}' for place in range(1, 18))}) AS version"
READ = {
    kind: f"SELECT xmin AS version, {table.name}.* FROM {table.name} WHERE id = ANY ($1)"
    for kind, table in HEALTH.items()
}
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Known:
    """A record and the transaction that wrote its row."""

    record: Record
    version: int


class OptimisticUnits:
    """What this process remembers of one store. Belongs to one event loop."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._known: dict[Subject, _Known] = {}
        self._misses = 0
        self._pause = 0

    def worth_a_guess(self) -> bool:
        """Whether the next unit should be one of these; asked once for each."""
        if self._pause:
            self._pause -= 1
            return False
        return True

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[OutcomeUnit]:
        """See `ports.HealthStore.optimistic`."""
        unit = _Unit(self._known, self._lane)
        try:
            yield unit
            await unit.store()
        except Outdated:
            self._known.clear()
            self._misses += 1
            self._pause = min(2**self._misses, LONGEST_PAUSE)
            raise
        except BaseException:
            self._known.clear()
            raise
        self._misses = 0


class _Unit:
    """Collects what is to be stored; `store` stores it at once."""

    def __init__(self, known: dict[Subject, _Known], lane: Lane) -> None:
        self._known = known
        self._lane = lane
        self._outcomes: Sequence[Outcome] = ()
        self._records: dict[Subject, Record] = {}

    async def claim(self, outcomes: Sequence[Outcome]) -> frozenset[str]:
        self._outcomes = outcomes
        return frozenset([outcome.attempt_id for outcome in outcomes])

    async def lock(self, subjects: Collection[Subject]) -> dict[Subject, Record]:
        for kind in HEALTH:
            missing = [subject.id for subject in subjects if subject.kind is kind and subject not in self._known]
            for row in await self._lane.fetch(READ[kind], missing) if missing else ():
                record = record_of(kind, row)
                self._known[record.subject] = _Known(record, row["version"])
        return {subject: self._known[subject].record for subject in sorted(subjects) if subject in self._known}

    async def put(self, record: Record, events: Sequence[Event]) -> None:
        known = self._known[record.subject].record
        if (
            events
            or replace(known, breaker=msgspec.structs.replace(known.breaker, tally=record.breaker.tally)) != record
        ):
            raise Outdated("more than counts is to be stored")
        self._records[record.subject] = record

    async def store(self) -> None:
        """Everything in one statement; Outdated where it proves wrong."""
        told = [list(column) for column in zip(*map(outcome_values, self._outcomes), strict=True)]
        columns: list[list[Any]] = told or [[] for _ in range(11)]
        for kind in HEALTH:
            mine = [record for subject, record in self._records.items() if subject.kind is kind]
            columns.append([record.subject.id for record in mine])
            columns.append([self._known[record.subject].version for record in mine])
            columns.append([_encode(tally_json(record.breaker.tally)).decode() for record in mine])
        ((version,),) = await self._lane.fetch(SETTLE, *columns)
        if version is None:
            raise Outdated("another unit has come between")
        for subject, record in self._records.items():
            self._known[subject] = _Known(record, version)

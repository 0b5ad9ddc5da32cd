"""Health in PostgreSQL.

Laws of this file:
- the order of locks is: the outcome of an Attempt or the catalogue's row, then Channels by id, then Supplies by id;
- every update names the sequence that it follows, and a row that moved on refuses it;
- history is only appended; the database refuses anything else;
- whoever appends announces it first: positions are drawn in one order and committed in another, and a reader of all
  subjects must not pass over one that comes late. The announcement is a shared advisory lock that says which positions
  were drawn before, held until the transaction has ended; nobody waits for it.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.kernel.canonical import canonical_json
from libs.store.database import Database
from services.health.domain.events import Event
from services.health.domain.observations import Outcome
from services.health.domain.states import State
from services.health.domain.subjects import Kind, Subject
from services.health.ports import HealthUnit, OutcomeUnit, Record, Recorded
from services.health.store.optimistic import OptimisticUnits
from services.health.store.rows import event_row, outcome_row, record_of, recorded_of, row_of
from services.health.store.tables import HEALTH, catalog, health_event
from services.health.store.tables import outcome as outcome_table

LOCK_KEY = 0x48454C54
DRAWN = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM health_event_position_seq"
KEY_SPAN = 2**31
"""A part of an advisory key is 32 bits wide: a position is announced without its higher bits."""
ANNOUNCE = f"SELECT pg_advisory_xact_lock_shared(:key, CAST(({DRAWN}) % {KEY_SPAN} AS integer))"
FLOORS = (
    "SELECT CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND classid = CAST(:key AS oid)"
)
RECORDS = " UNION ALL ".join(
    f"SELECT '{kind.value}' AS kind, {table.name}.* FROM {table.name}" for kind, table in HEALTH.items()
)


COOLED = " UNION ALL ".join(
    f"SELECT '{kind.value}' AS kind, id FROM {table.name}"
    f" WHERE state = '{State.CIRCUIT_OPEN.value}' AND cooldown_until <= $1"
    for kind, table in HEALTH.items()
)


class PostgresHealthStore:
    """ports.HealthStore over one Database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looking = database.lane()
        self._optimistic = OptimisticUnits(database.lane(by_index=True))

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[HealthUnit]:
        """A unit of work in one transaction."""
        async with self._database.unit() as tx:
            yield _Unit(tx)

    def optimistic(self) -> AbstractAsyncContextManager[OutcomeUnit]:
        """One statement, where what is remembered holds."""
        return self._optimistic.unit() if self._optimistic.worth_a_guess() else self.unit()

    async def records(self) -> list[Record]:
        """All records, in one snapshot."""
        found = [record_of(Kind(row["kind"]), row) for row in await self._looking.fetch(RECORDS)]
        return sorted(found, key=lambda record: record.subject)  # Python's order of ids, whatever the collation

    async def cooled(self, now: datetime) -> list[Subject]:
        """Open circuits whose cooldown is over."""
        return sorted(Subject(Kind(row["kind"]), row["id"]) for row in await self._looking.fetch(COOLED, now))

    async def events(self, subject: Subject | None, after: int, limit: int) -> list[Recorded]:
        """History, oldest first."""
        query = select(health_event).where(health_event.c.position > after)
        if subject is not None:  # its row is locked by whoever appends: its positions are committed in their order
            query = query.where(
                health_event.c.subject_kind == subject.kind.value, health_event.c.subject_id == subject.id
            )
        else:
            query = query.where(health_event.c.position <= await self._horizon())
        async with self._database.read() as tx:
            rows = (await tx.execute(query.order_by(health_event.c.position).limit(limit))).mappings()
            return [recorded_of(row) for row in rows]

    async def _horizon(self) -> int:
        """The highest position below which nothing is still to come.

        A transaction of its own, so that rows are read by a snapshot that is taken afterwards: a writer that is not
        among the holders has either committed, and is seen then, or will take its positions later than `drawn`.
        """
        async with self._database.read() as tx:
            drawn = int((await tx.execute(text(DRAWN))).scalar_one())
            announced = (await tx.execute(text(FLOORS), {"key": LOCK_KEY})).scalars().all()
        return horizon(drawn, announced)

    async def forget_outcomes(self, before: datetime) -> int:
        """Delete old outcomes."""
        async with self._database.unit() as tx:
            return (await tx.execute(delete(outcome_table).where(outcome_table.c.observed_at < before))).rowcount

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()


OUTCOME = ", ".join(column.name for column in outcome_table.c)
CLAIM = text(
    f"INSERT INTO outcome ({OUTCOME}) SELECT {OUTCOME} FROM json_populate_recordset(NULL::outcome, CAST(:rows AS json))"
    " ORDER BY attempt_id ON CONFLICT DO NOTHING RETURNING attempt_id"
)


class _Unit:
    """ports.HealthUnit on one transaction."""

    def __init__(self, tx: AsyncConnection) -> None:
        self._tx = tx

    async def claim(self, outcomes: Sequence[Outcome]) -> frozenset[str]:
        # Waits for another unit that reports one of the Attempts, and is refused that one if the other commits.
        rows = canonical_json([outcome_row(outcome) for outcome in outcomes]).decode()
        return frozenset((await self._tx.execute(CLAIM, {"rows": rows})).scalars())

    async def lock(self, subjects: Collection[Subject] | None) -> dict[Subject, Record]:
        found: dict[Subject, Record] = {}
        for kind, table in HEALTH.items():
            query = select(table).order_by(table.c.id).with_for_update()
            if subjects is not None:
                ids = [subject.id for subject in subjects if subject.kind is kind]
                if not ids:
                    continue
                query = query.where(table.c.id.in_(ids))
            for row in (await self._tx.execute(query)).mappings():
                record = record_of(kind, row)
                found[record.subject] = record
        return found

    async def add(self, record: Record, events: Sequence[Event]) -> None:
        table = HEALTH[record.subject.kind]
        await self._tx.execute(insert(table).values(id=record.subject.id, **row_of(record)))
        await self._append(record, events)

    async def put(self, record: Record, events: Sequence[Event]) -> None:
        table = HEALTH[record.subject.kind]
        follows = record.sequence - len(events)
        statement = update(table).where(table.c.id == record.subject.id, table.c.sequence == follows)
        if (await self._tx.execute(statement.values(row_of(record)))).rowcount != 1:
            raise Fault.of("revision_conflict", f"{record.subject} has changed in between")
        await self._append(record, events)

    async def _append(self, record: Record, events: Sequence[Event]) -> None:
        first = record.sequence - len(events) + 1
        rows = [event_row(record.subject, first + index, event) for index, event in enumerate(events)]
        if rows:
            await self._tx.execute(text(ANNOUNCE), {"key": LOCK_KEY})
            await self._tx.execute(insert(health_event), rows)

    async def lock_catalog_revision(self) -> int:
        query = select(catalog.c.revision).where(catalog.c.id == 1).with_for_update()
        return int((await self._tx.execute(query)).scalar_one())

    async def set_catalog_revision(self, revision: int) -> None:
        await self._tx.execute(update(catalog).where(catalog.c.id == 1).values(revision=revision))


def horizon(drawn: int, announced: Collection[int]) -> int:
    """The highest safe position, of `drawn` ones, while writers hold what follows those that they have `announced`."""
    behind = [(drawn - low) % KEY_SPAN for low in announced]
    return drawn - max((steps for steps in behind if steps < KEY_SPAN // 2), default=0)  # else announced since: ahead


LOCK_ORDER = (Kind.CHANNEL, Kind.SUPPLY)
assert tuple(HEALTH) == LOCK_ORDER, "Channels are locked before Supplies"

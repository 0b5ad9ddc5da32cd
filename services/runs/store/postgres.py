"""Runs in PostgreSQL. A Run's row is its lock: whoever changes it numbers the events in the same transaction.

The document in the row of a large Run may be behind its events (`following`); what is read here never is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Text, cast, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_once
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.kernel.ids import Ids
from libs.store.database import Database
from libs.store.errors import LOCK_TIMEOUT, sqlstate
from services.runs.domain.desks import DeskChanges
from services.runs.domain.history import rebuilt
from services.runs.domain.memos import Memo
from services.runs.domain.run import MOVING_STATES, PRUNABLE_STATES, Draft, Event, Run, RunState
from services.runs.store.codec import run_from_text, run_to_text
from services.runs.store.following import written_whole
from services.runs.store.numbering import number
from services.runs.store.postgres_callbacks import write_callback
from services.runs.store.postgres_desks import write_desks
from services.runs.store.postgres_memos import read_memo, write_memos
from services.runs.store.tables import run_events, run_keys, runs

_WHOLE = select(
    runs.c.revision,
    runs.c.last_sequence,
    cast(runs.c.document, Text).label("document"),
    cast(runs.c.production, Text).label("production"),
)
_LIVE = (
    "SELECT id, revision FROM runs WHERE state = ANY($1) AND state IN ('pending', 'running', 'paused')"
    " AND id > $2 AND production IS {} ORDER BY id LIMIT $3"
)
"""The states that are said outright are those of the partial indexes: a plan for any states could not use them."""
LIVE = {False: _LIVE.format("NULL"), True: _LIVE.format("NOT NULL")}
"""By whether productions are asked for. Ticks ask several times a second, mostly in vain: a lane makes that cheap."""
_LAST = (run_events.c.run_id == runs.c.id) & (run_events.c.sequence == runs.c.last_sequence)


class PostgresRuns:
    """Implements `ports.Runs`."""

    def __init__(self, database: Database, ids: Ids) -> None:
        self._database = database
        self._looking = database.lane(by_index=True)
        self._ids = ids
        self._behind: set[str] = set()
        """Runs whose documents this process left or found behind."""

    async def add(
        self, run: Run, drafts: Sequence[Draft], key: str, fingerprint: str, now: datetime
    ) -> tuple[Run, bool]:
        """See the port. The key is written first: of two equal ones the second waits for the first and finds it."""
        async with self._database.unit() as tx:
            if key and not await _named(tx, run, key, fingerprint):
                earlier = await _earlier(tx, run.tenant, key, fingerprint)
                assert earlier is not None, "keys live as long as their runs"
                return earlier, True
            events = number(run, drafts, self._ids.ulid, now)
            kept = replace(run, last_sequence=len(events))
            row = {"id": run.id, "tenant": run.tenant, "production": run.production, **_columns(kept)}
            await tx.execute(insert(runs).values(row))
            await _append(tx, events)
            return kept, False

    async def find_by_key(self, tenant: str, key: str, fingerprint: str) -> Run | None:
        """See the port."""
        async with self._database.read() as tx:
            return await _earlier(tx, tenant, key, fingerprint)

    async def save(self, run: Run, drafts: Sequence[Draft], now: datetime, desks: DeskChanges) -> Run | None:
        """See the port."""
        events = number(run, drafts, self._ids.ulid, now)
        kept = replace(run, revision=run.revision + 1, last_sequence=run.last_sequence + len(events))
        whole = written_whole(kept, run.last_sequence, drafts)
        async with self._database.unit() as tx:
            columns = _columns(kept) if whole else _counters(kept)
            written = await tx.execute(_guarded(run).values(**columns))
            if not written.rowcount:
                return None
            await _append(tx, events)
            await write_desks(tx, run.id, desks, now)
            await write_memos(tx, run.tenant, desks)
            await write_callback(tx, kept, events)
        (self._behind.discard if whole else self._behind.add)(run.id)
        return kept

    async def catch_up(self, run: Run) -> None:
        """See the port. Who was faster has left it behind, and lets it catch up."""
        if run.id in self._behind:
            async with self._database.unit() as tx:
                await tx.execute(_guarded(run).values(document=_document(run)))
            self._behind.discard(run.id)

    async def memo(self, tenant: str, input_hash: str, besides: str) -> Memo | None:
        """See the port."""
        async with self._database.read() as tx:
            return await read_memo(tx, tenant, input_hash, besides)

    async def get(self, run_id: str) -> Run | None:
        """See the port."""
        found = await self._many(_WHOLE.where(runs.c.id == run_id))
        return found[0] if found else None

    async def page(
        self, tenant: str, states: Sequence[RunState], label: tuple[str, str | None] | None, before: str, size: int
    ) -> list[Run]:
        """See the port."""
        query = _WHOLE.order_by(runs.c.id.desc()).limit(size)
        if tenant:
            query = query.where(runs.c.tenant == tenant)
        if states:
            query = query.where(runs.c.state.in_(states))
        if before:
            query = query.where(runs.c.id < before)
        if label is not None:
            key, value = label
            query = query.where(runs.c.labels.has_key(key) if value is None else runs.c.labels.contains({key: value}))
        return await self._many(query)

    async def several(self, run_ids: Sequence[str]) -> list[Run]:
        """See the port."""
        return await self._many(_WHOLE.where(runs.c.id.in_(run_ids)).order_by(runs.c.id))

    async def revisions(
        self, states: Sequence[RunState], after: str, size: int, *, productions: bool
    ) -> Mapping[str, int]:
        """See the port."""
        rows = await self._looking.fetch(LIVE[productions], [state.value for state in states], after, size)
        return {row["id"]: row["revision"] for row in rows}

    async def _many(self, query: Any) -> list[Run]:
        async with self._database.read() as tx:
            found, behind = await _read(tx, query)
        self._behind = self._behind.difference(run.id for run in found) | behind
        return found

    async def silent(self, before: datetime, after: str, size: int) -> Mapping[str, int]:
        """See the port."""
        old = select(runs.c.id, runs.c.revision).join(run_events, _LAST).where(run_events.c.created_at < before)
        moving = old.where(runs.c.state.in_(MOVING_STATES), runs.c.id > after)
        async with self._database.read() as tx:
            rows = (await tx.execute(moving.order_by(runs.c.id).limit(size))).all()
        return {row.id: row.revision for row in rows}

    async def events(self, run_id: str, after: int, size: int) -> list[Event]:
        """See the port."""
        query = select(run_events).where(run_events.c.run_id == run_id, run_events.c.sequence > after)
        async with self._database.read() as tx:
            rows = (await tx.execute(query.order_by(run_events.c.sequence).limit(size))).all()
        return [_event(row) for row in rows]

    async def histories(
        self, since: datetime, kinds: Collection[str], size: int, most_events: int
    ) -> list[list[Event]]:
        """See the port."""
        looked = select(runs.c.id, runs.c.last_sequence).order_by(runs.c.id.desc()).limit(size).subquery()
        so_far = func.sum(looked.c.last_sequence).over(order_by=looked.c.id.desc())
        newest = select(looked.c.id, (so_far - looked.c.last_sequence).label("before")).subquery()
        first = run_events.alias()
        begun = (first.c.run_id == newest.c.id) & (first.c.sequence == 1) & (first.c.created_at >= since)
        begun &= newest.c.before < most_events
        query = select(run_events).select_from(
            newest.join(first, begun).join(run_events, run_events.c.run_id == newest.c.id)
        )
        query = query.where(run_events.c.kind.in_(kinds)).order_by(run_events.c.run_id, run_events.c.sequence)
        async with self._database.read() as tx:
            rows = (await tx.execute(query)).all()
        return [[_event(row) for row in of_run] for _, of_run in groupby(rows, key=lambda row: row.run_id)]

    async def prune(self, before: datetime, size: int) -> int:
        """See the port. One Run a transaction; its row is locked, so a redrive comes before or after."""
        ended = runs.c.state.in_(PRUNABLE_STATES) & (runs.c.earliest < runs.c.last_sequence)
        old = select(runs.c.id).join(run_events, _LAST).where(ended, run_events.c.created_at < before)
        async with self._database.read() as tx:
            found = (await tx.execute(old.order_by(runs.c.id).limit(size))).scalars().all()
        pruned = 0
        for run_id in found:
            async with self._database.unit() as tx:
                kept = update(runs).where(runs.c.id == run_id, ended).values(earliest=runs.c.last_sequence)
                earliest = (await tx.execute(kept.returning(runs.c.earliest))).scalar_one_or_none()
                if earliest is not None:
                    lost = (run_events.c.run_id == run_id) & (run_events.c.sequence < earliest)
                    await tx.execute(delete(run_events).where(lost))
                    pruned += 1
        return pruned

    async def last_sequences(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """See the port."""
        query = select(runs.c.id, runs.c.last_sequence).where(runs.c.id.in_(run_ids))
        async with self._database.read() as tx:
            return {row.id: row.last_sequence for row in (await tx.execute(query)).all()}


def _event(row: Any) -> Event:
    return Event(row.id, row.run_id, row.sequence, row.kind, row.data, row.created_at)


def _columns(run: Run) -> dict[str, Any]:
    return {**_counters(run), "labels": dict(run.labels), "document": _document(run)}


def _counters(run: Run) -> dict[str, Any]:
    return {"state": run.state.value, "revision": run.revision, "last_sequence": run.last_sequence}


def _document(run: Run) -> Any:
    return cast(literal(run_to_text(run), Text), JSONB)


def _guarded(run: Run) -> Any:
    return update(runs).where(runs.c.id == run.id, runs.c.revision == run.revision)


async def _read(tx: AsyncConnection, query: Any) -> tuple[list[Run], set[str]]:
    """(The Runs that a query over `_WHOLE` finds, those of them whose documents are behind)."""
    rows = (await tx.execute(query)).all()
    found = [run_from_text(row.document, row.production) for row in rows]
    behind = {run.id: row for run, row in zip(found, rows, strict=True) if run.last_sequence < row.last_sequence}
    if not behind:
        return found, set()
    return [await _caught_up(tx, run, behind[run.id]) if run.id in behind else run for run in found], set(behind)


async def _caught_up(tx: AsyncConnection, run: Run, row: Any) -> Run:
    later = run_events.c.sequence.between(run.last_sequence + 1, row.last_sequence)
    query = select(run_events).where(run_events.c.run_id == run.id, later).order_by(run_events.c.sequence)
    events = [_event(told) for told in (await tx.execute(query)).all()]
    return replace(rebuilt(events, run), revision=row.revision)


async def _named(tx: AsyncConnection, run: Run, key: str, fingerprint: str) -> bool:
    """Whether the key is this Run's now. Fault idempotency_in_progress if another's commit does not come in time."""
    named = {"tenant": run.tenant, "key": key, "run_id": run.id, "fingerprint": fingerprint}
    try:
        written = await tx.execute(insert_once(run_keys).values(**named).on_conflict_do_nothing())
    except DBAPIError as error:
        if sqlstate(error) == LOCK_TIMEOUT:
            raise Fault.of("idempotency_in_progress", f"key {key!r} is in flight at another replica") from error
        raise
    return bool(written.rowcount)


async def _earlier(tx: AsyncConnection, tenant: str, key: str, fingerprint: str) -> Run | None:
    joined = select(run_keys.c.run_id, run_keys.c.fingerprint)
    row = (await tx.execute(joined.where(run_keys.c.tenant == tenant, run_keys.c.key == key))).one_or_none()
    if row is None:
        return None
    if fingerprint not in (row.fingerprint, ""):
        raise Fault.of("idempotency_conflict", f"key {key!r} came before with another body")
    found, _ = await _read(tx, _WHOLE.where(runs.c.id == row.run_id))
    return found[0]


async def _append(tx: AsyncConnection, events: Sequence[Event]) -> None:
    if not events:
        return
    rows = [
        {
            "run_id": event.run_id,
            "sequence": event.sequence,
            "id": event.id,
            "kind": event.kind,
            "data": event.data,
            "created_at": event.created_at,
        }
        for event in events
    ]
    await tx.execute(insert(run_events), rows)

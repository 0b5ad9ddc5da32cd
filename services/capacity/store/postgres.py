"""Capacity in PostgreSQL: one short transaction a reservation, levels locked in a fixed order, the server's time only.

Laws of this file:
- the order of locks is: the catalogue's row, then levels by kind (whole kind, Channel, Supply) and id, then leases;
- what is decided is decided by `domain.ledger`; SQL only counts. (A gatherer that decides many requests in one
  transaction can stand here behind the same port: lock the union of levels, count once, decide one by one.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.faults.fault import Fault
from libs.store.database import Database
from services.capacity.domain import holding, ledger
from services.capacity.domain.counts import Count, counted
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import Admission, HealthLimit, Kind, Level, Subject
from services.capacity.ports import Figure, Renewal
from services.capacity.store import statements as sql
from services.capacity.store import tables

SERVER_TIME = "clock_timestamp()"


class PostgresCapacityStore:
    """ports.CapacityStore over one Database. `now_sql` is an expression for the time; only tests name another."""

    def __init__(self, database: Database, now_sql: str = SERVER_TIME) -> None:
        self._database = database
        self._now_sql = now_sql

    def _text(self, statement: str, **parts: str) -> str:
        return statement.format(now=self._now_sql, **parts)

    async def reserve(self, request: Request) -> Lease | Refusal:
        """Decide by the ledger, over what SQL counted."""
        return await self._database.run(lambda tx: self._reserve(tx, request))

    async def _reserve(self, tx: AsyncConnection, request: Request) -> Lease | Refusal:
        declared = await self._lock(tx, request)
        try:
            ledger.checked(declared, request)
        except Fault:
            known = await self._known(tx, request)
            if known is None:
                raise
            return known
        levels = [ledger.heard(level, request) for level in declared]
        now, counts = await self._count(tx, request, levels)
        refusals = await self._refusals(tx, request, levels, counts, now)
        if refusals:
            known = await self._known(tx, request)
            if known is not None:
                return known
        else:
            lease = lease_of(request, now)
            added = await tx.execute(insert(tables.lease).values(asdict(lease)).on_conflict_do_nothing())
            if added.rowcount != 1:
                known = await self._known(tx, request)
                assert known is not None, "a lease that is in the way can be read"
                return known
        news = {after.subject: after.health for before, after in zip(declared, levels, strict=True) if before != after}
        await _hear(tx, {subject: health for subject, health in news.items() if health is not None})
        return ledger.binding(refusals) if refusals else lease

    async def _lock(self, tx: AsyncConnection, request: Request) -> list[Level]:
        names = {"kind": request.kind, "channel_id": request.channel_id, "supply_id": request.supply_id}
        rows = (await tx.execute(text(sql.LOCK_LEVELS), names)).mappings()
        return [_level(row) for row in rows]

    async def _known(self, tx: AsyncConnection, request: Request) -> Lease | None:
        """The answer to a repeated reservation, None for a first one."""
        found = await tx.execute(text(self._text(sql.KNOWN)), {"id": request.lease_id})
        row = found.mappings().one_or_none()
        return None if row is None else holding.repeated(_lease(row), request, row["now"])

    async def _count(
        self, tx: AsyncConnection, request: Request, levels: Sequence[Level]
    ) -> tuple[datetime, list[Count]]:
        """End what lapsed on these levels and count what is left, at one moment."""
        whole_kind = levels[0].subject.kind is Kind.GLOBAL
        scope = sql.CHANNEL_OR_KIND if whole_kind else sql.CHANNEL
        windows = any(level.requests_per_minute or level.tokens_per_minute for level in levels)
        statement = self._text(sql.COUNT, scope=scope, recent=sql.RECENT if windows else "false")
        values = {"channel_id": request.channel_id} | ({"kind": request.kind} if whole_kind else {})
        rows = (await tx.execute(text(statement), values)).mappings().all()
        return rows[0]["now"], [_count(row) for row in rows if row["kind"] is not None]

    async def _refusals(
        self, tx: AsyncConnection, request: Request, levels: Sequence[Level], counts: Sequence[Count], now: datetime
    ) -> list[Refusal]:
        refusals: list[Refusal] = []
        for level in levels:
            for refusal in ledger.closed_gates(level, counted(level, counts), request):
                if refusal.gate in ledger.RATES:
                    window = await self._window(tx, level, now)
                    refusal = replace(refusal, retry_at=ledger.retry_at(refusal, request.tokens, window))
                refusals.append(refusal)
        return refusals

    async def _window(self, tx: AsyncConnection, level: Level, now: datetime) -> list[Admission]:
        column = {Kind.GLOBAL: "kind", Kind.CHANNEL: "channel_id", Kind.SUPPLY: "supply_id"}[level.subject.kind]
        statement = self._text(sql.WINDOW, scope=f"{column} = :id")
        rows = await tx.execute(text(statement), {"id": level.subject.id, "now": now})
        return [Admission(row.reserved_at, row.tokens) for row in rows]

    async def renew(self, holder: str, lease_ids: Sequence[str], ttl: timedelta) -> Renewal:
        """Prolong what is held, all in one statement."""
        values = {"ids": list(lease_ids), "holder": holder, "ttl": ttl}
        async with self._database.unit() as tx:
            found = await tx.execute(text(self._text(sql.RENEW)), values)
            done = frozenset(found.scalars())
        renewed = tuple(lease_id for lease_id in lease_ids if lease_id in done)
        return Renewal(renewed, tuple(lease_id for lease_id in lease_ids if lease_id not in done))

    async def release(self, lease_id: str, holder: str, used_tokens: int | None) -> Lease | None:
        """Give it back."""
        values = {"id": lease_id, "holder": holder, "used": used_tokens}
        async with self._database.unit() as tx:
            row = (await tx.execute(text(self._text(sql.RELEASE)), values)).mappings().one_or_none()
        return None if row is None else _lease(row)

    async def figures(self) -> list[Figure]:
        """Every declared level, in one snapshot."""
        query = select(tables.level).where(~tables.level.c.retired)
        async with self._database.read() as tx:
            levels = [_level(row) for row in (await tx.execute(query)).mappings()]
            statement = self._text(sql.FIGURES, recent=sql.RECENT)
            counts = [_count(row) for row in (await tx.execute(text(statement))).mappings()]
        return [Figure(level, counted(level, counts)) for level in sorted(levels, key=lambda level: level.subject)]

    async def leases(self) -> list[Lease]:
        """Live leases, oldest first."""
        async with self._database.read() as tx:
            return [_lease(row) for row in (await tx.execute(text(self._text(sql.LIVE)))).mappings()]

    async def apply_levels(self, revision: int, levels: Sequence[Level]) -> int:
        """Declare levels, keep their health."""
        async with self._database.unit() as tx:
            in_force = int((await tx.execute(select(tables.catalog.c.revision).with_for_update())).scalar_one())
            if revision < in_force:
                return in_force
            table = tables.level
            await tx.execute(select(table.c.id).order_by(table.c.kind, table.c.id).with_for_update())
            await tx.execute(update(table).values(retired=True))
            rows = [_row(level) for level in sorted(levels, key=lambda level: level.subject)]
            if rows:
                statement = insert(table)
                kept = {name: statement.excluded[name] for name in rows[0] if name not in ("kind", "id")}
                await tx.execute(statement.on_conflict_do_update(index_elements=["kind", "id"], set_=kept), rows)
            await tx.execute(update(tables.catalog).values(revision=revision))
        return revision

    async def hear(self, health: Mapping[Subject, HealthLimit]) -> None:
        """Keep what is newer."""
        async with self._database.unit() as tx:
            await _hear(tx, health)

    async def catalog_revision(self) -> int:
        """The revision in force."""
        async with self._database.read() as tx:
            return int((await tx.execute(select(tables.catalog.c.revision))).scalar_one())

    async def sweep(self) -> frozenset[Subject]:
        """End what lapsed, forget what ended long ago."""
        freed: set[Subject] = set()
        async with self._database.unit() as tx:
            for row in await tx.execute(text(self._text(sql.SWEEP, scope="true"))):
                freed.update((Subject(Kind.GLOBAL, row.kind), Subject(Kind.CHANNEL, row.channel_id)))
                freed.add(Subject(Kind.SUPPLY, row.supply_id))
            await tx.execute(text(self._text(sql.FORGET)))
        return frozenset(freed)

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()


async def _hear(tx: AsyncConnection, health: Mapping[Subject, HealthLimit]) -> None:
    rows = [{"kind": int(subject.kind), "id": subject.id, **asdict(health[subject])} for subject in sorted(health)]
    if rows:
        await tx.execute(text(sql.HEAR), rows)


def _level(row: RowMapping) -> Level:
    health = None
    if row["health_revision"] is not None:
        health = HealthLimit(row["health_epoch"], row["health_revision"], row["health_limit"])
    return Level(
        subject=Subject(Kind(row["kind"]), row["id"]),
        channel_id=row["channel_id"],
        concurrency=row["concurrency"],
        requests_per_minute=row["requests_per_minute"],
        tokens_per_minute=row["tokens_per_minute"],
        health=health,
    )


def _row(level: Level) -> dict[str, object]:
    """What the catalogue says of a level; health is not the catalogue's word."""
    return {
        "kind": int(level.subject.kind),
        "id": level.subject.id,
        "channel_id": level.channel_id,
        "concurrency": level.concurrency,
        "requests_per_minute": level.requests_per_minute,
        "tokens_per_minute": level.tokens_per_minute,
        "retired": False,
    }


def _lease(row: RowMapping) -> Lease:
    return Lease(**{name: row[name] for name in tables.lease.c.keys()})  # noqa: SIM118 # a column collection, no dict


def _count(row: RowMapping) -> Count:
    return Count(**{name: row[name] for name in Count.__slots__})

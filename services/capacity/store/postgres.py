"""Capacity in PostgreSQL: what waits in one turn of the loop is one statement and one commit, on the server's time.

Laws of this file:
- the order of locks is: the catalogue's row, then levels by kind (whole kind, Channel, Supply) and id, then leases;
- reservations and releases are decided by the function `decide_group` of the schema, which answers as `domain.ledger`,
  `domain.holding` and `domain.pacing` do; the differential tests hold the two together, step by step;
- every member of a group is decided as if alone: releases first, then reservations in the order asked.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import msgspec
from msgspec import structs
from sqlalchemy import select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from libs.store.gathering import Gathering
from services.capacity.domain import holding
from services.capacity.domain.counts import Count, counted
from services.capacity.domain.leases import Lease, Request, lease_of
from services.capacity.domain.ledger import Refusal
from services.capacity.domain.levels import HealthLimit, Kind, Level, Subject
from services.capacity.domain.pacing import SILENT, Feedback, Pace
from services.capacity.ports import Figure, Renewal
from services.capacity.store import statements as sql
from services.capacity.store import tables
from services.capacity.store.groups import Answer, Ask, Group
from services.capacity.store.verdicts import Known, Return
from services.capacity.store.windows import Windows


class PostgresCapacityStore:
    """ports.CapacityStore over one Database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lane, self._looking = database.lane(), database.lane(by_index=True)
        self._group: Gathering[Ask, Answer] = Gathering(self._decide, lambda ask: ask.lease_id)
        self._windows = Windows()

    def reserve(self, request: Request) -> Awaitable[Lease | Refusal]:
        """Decide, together with whoever else waits. (A reservation is admitted or refused.)"""
        return cast("Awaitable[Lease | Refusal]", self._group.begin(request))

    def release(
        self, lease_id: str, holder: str, used_tokens: int | None, feedback: Feedback = SILENT
    ) -> Awaitable[Lease | None]:
        """Give it back, together with whoever else waits. (A release is answered with a lease or nothing.)"""
        return cast("Awaitable[Lease | None]", self._group.begin(Return(lease_id, holder, used_tokens, feedback)))

    async def _decide(self, asks: Sequence[Ask]) -> Sequence[Answer | Exception]:
        """One statement, one commit; a lone reservation to which nothing objects takes the short one."""
        if len(asks) == 1 and not isinstance(asks[0], Return):
            lease = await self._alone(asks[0])
            if lease is not None:
                return [lease]
        group = Group(asks)
        (row,) = await self._lane.fetch(sql.DECIDE, *group.columns())
        answers = list(group.answers(row))
        for place, ask in enumerate(asks):
            if isinstance(answers[place], Known) and not isinstance(ask, Return):
                answers[place] = await self._repeated(ask)
        return answers

    async def _repeated(self, request: Request) -> Answer | Exception:
        """The answer to a reservation whose id was there already; a fault of it is its own."""
        try:
            known = await self._known(request)
        except Exception as error:
            return error
        return known if known is not None else (await self._decide((request,)))[0]  # forgotten between the two looks

    async def _alone(self, request: Request) -> Lease | None:
        """The lease, or None where it takes a look to decide."""
        (row,) = await self._lane.fetch(
            sql.RESERVE_ALONE,
            request.lease_id,
            request.holder,
            request.kind,
            request.channel_id,
            request.supply_id,
            request.tokens,
            request.ttl,
            request.channel_health.epoch,
            request.channel_health.revision,
            request.supply_health.epoch,
            request.supply_health.revision,
        )
        return None if row["at"] is None else lease_of(request, row["at"])

    async def _known(self, request: Request) -> Lease | None:
        """The answer to a repeated reservation."""
        async with self._database.unit() as tx:
            found = await tx.execute(text(sql.KNOWN), {"id": request.lease_id})
            row = found.mappings().one_or_none()
        return None if row is None else holding.repeated(_lease(row), request, row["now"])

    async def renew(
        self, holder: str, lease_ids: Sequence[str], ttl: timedelta, taught: Sequence[Lease] = ()
    ) -> Renewal:
        """Prolong what is held, all in one statement."""
        values = {"ids": list(lease_ids), "holder": holder, "ttl": ttl}
        async with self._database.unit() as tx:
            found = await tx.execute(text(sql.RENEW), values)
            done = frozenset(found.scalars())
        renewed = tuple(lease_id for lease_id in lease_ids if lease_id in done)
        return Renewal(renewed, tuple(lease_id for lease_id in lease_ids if lease_id not in done))

    async def figures(self) -> list[Figure]:
        """Every declared level, in one snapshot; the windows of a busy minute may be a second older."""
        windows = self._windows.lent(asyncio.get_running_loop().time())
        *rows, last = await self._looking.fetch(sql.LOOK if windows is None else sql.LIVE_LOOK)
        levels = list(map(_level, rows))
        counts = msgspec.convert(last["counts"], list[Count])
        if windows is None:
            self._windows.keep(counts, asyncio.get_running_loop().time())
        counts += windows or ()
        return [Figure(level, counted(level, counts)) for level in sorted(levels, key=lambda level: level.subject)]

    async def leases(self) -> list[Lease]:
        """Live leases, oldest first."""
        async with self._database.read() as tx:
            return [_lease(row) for row in (await tx.execute(text(sql.LIVE))).mappings()]

    async def apply_levels(self, revision: int, levels: Sequence[Level]) -> int:
        """Declare levels, keep their health and pace."""
        async with self._database.unit() as tx:
            in_force = int((await tx.execute(select(tables.catalog.c.revision).with_for_update())).scalar_one())
            if revision < in_force:
                return in_force
            table = tables.level
            await tx.execute(select(table.c.id).order_by(table.c.kind, table.c.id).with_for_update())
            await tx.execute(update(table).values(retired=True, window_counted_at=None))
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
        for row in await self._looking.fetch(sql.SWEEP):
            freed.update((Subject(Kind.GLOBAL, row["kind"]), Subject(Kind.CHANNEL, row["channel_id"])))
            freed.add(Subject(Kind.SUPPLY, row["supply_id"]))
        await self._looking.fetch(sql.FORGET)
        return frozenset(freed)

    async def close(self) -> None:
        """Answer who waits, close the connections."""
        await self._group.close()
        await self._lane.close()
        await self._looking.close()
        await self._database.close()


async def _hear(tx: AsyncConnection, health: Mapping[Subject, HealthLimit]) -> None:
    rows = [
        {"kind": int(subject.kind), "id": subject.id, **structs.asdict(health[subject])} for subject in sorted(health)
    ]
    if rows:
        await tx.execute(text(sql.HEAR), rows)


def _level(row: Any) -> Level:
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
        pace=Pace(row["pace_limit"], row["pace_ceiling"], row["pace_cut_at"], row["pace_frozen_until"]),
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


def _lease(row: Any) -> Lease:
    return Lease(**{name: row[name] for name in tables.lease.c.keys()})  # noqa: SIM118 # a column collection, no dict

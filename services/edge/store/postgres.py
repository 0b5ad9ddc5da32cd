"""Keys, owners and counts in PostgreSQL.

Rows of which there may be any number go into a statement as arrays: it takes 32,767 parameters and no more.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, DateTime, Text, cast, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_once
from sqlalchemy.types import TypeEngine

from libs.store.database import Database
from services.edge.domain.keys import Kept, Key, Scope
from services.edge.store.tables import artifact_owners, keys, request_counts

LEFT_BEHIND = 60
"""Minutes after which rows of a replica that is gone are removed by another."""


class PostgresKeys:
    """Implements `ports.Keys`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key, digest: str) -> None:
        """See the port."""
        row = {
            "id": key.id,
            "tenant": key.tenant,
            "scopes": sorted(key.scopes),
            "digest": digest,
            "created_at": key.created_at,
            "expires_at": key.expires_at,
            "revoked_at": key.revoked_at,
        }
        async with self._database.unit() as tx:
            await tx.execute(insert(keys).values(**row))

    async def find(self, key_id: str) -> Kept | None:
        """See the port."""
        async with self._database.read() as tx:
            row = (await tx.execute(select(keys).where(keys.c.id == key_id))).one_or_none()
        return Kept(_key(row), row.digest, row.former_digest or "") if row else None

    async def page(self, tenant: str, before: str, size: int) -> list[Key]:
        """See the port."""
        query = select(keys).order_by(keys.c.id.desc()).limit(size)
        if tenant:
            query = query.where(keys.c.tenant == tenant)
        if before:
            query = query.where(keys.c.id < before)
        async with self._database.read() as tx:
            return [_key(row) for row in (await tx.execute(query)).all()]

    async def revoke(self, key_id: str, now: datetime) -> Key | None:
        """See the port."""
        ended = update(keys).where(keys.c.id == key_id).values(revoked_at=func.coalesce(keys.c.revoked_at, now))
        async with self._database.unit() as tx:
            row = (await tx.execute(ended.returning(keys))).one_or_none()
        return _key(row) if row else None

    async def rotate(self, key_id: str, digest: str, now: datetime, former_until: datetime) -> Key | None:
        """See the port."""
        stands = keys.c.revoked_at.is_(None) & (keys.c.expires_at.is_(None) | (keys.c.expires_at > now))
        rotated = update(keys).where(keys.c.id == key_id, stands)
        rotated = rotated.values(digest=digest, former_digest=keys.c.digest, former_until=former_until)
        async with self._database.unit() as tx:
            row = (await tx.execute(rotated.returning(keys))).one_or_none()
        return _key(row) if row else None


class PostgresOwners:
    """Implements `ports.Owners`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, tenant: str, digests: Iterable[str], now: datetime) -> None:
        """See the port."""
        owned = sorted(digests)
        if not owned:
            return
        rows = select(literal(tenant), _each(owned, Text), literal(now, DateTime(timezone=True)))
        added = insert_once(artifact_owners).from_select(["tenant", "sha256", "created_at"], rows)
        async with self._database.unit() as tx:
            await tx.execute(added.on_conflict_do_nothing())

    async def owns(self, tenant: str, digest: str) -> bool:
        """See the port."""
        one = artifact_owners.c.tenant == tenant, artifact_owners.c.sha256 == digest
        async with self._database.read() as tx:
            return (await tx.execute(select(artifact_owners.c.sha256).where(*one))).first() is not None

    async def ping(self) -> None:
        """See the port."""
        await self._database.ping()


class PostgresCounts:
    """Implements `ports.RequestCounts`. Each replica writes rows of its own, so none waits for another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cleaned = 0

    async def exchange(self, replica: str, minute: int, requests: Mapping[str, int]) -> Mapping[str, int]:
        """See the port."""
        table = request_counts
        tenants = sorted(requests)
        counts = [requests[tenant] for tenant in tenants]
        rows = select(literal(minute), _each(tenants, Text), literal(replica), _each(counts, BigInteger))
        others = select(table.c.tenant, func.sum(table.c.requests).label("requests"))
        others = others.where(table.c.minute == minute, table.c.replica != replica).group_by(table.c.tenant)
        async with self._database.unit() as tx:
            if tenants:
                written = insert_once(table).from_select(["minute", "tenant", "replica", "requests"], rows)
                counted = {"requests": written.excluded.requests}
                await tx.execute(written.on_conflict_do_update(index_elements=list(table.primary_key), set_=counted))
            found = {row.tenant: int(row.requests) for row in (await tx.execute(others)).all()}
            if minute != self._cleaned:
                await tx.execute(delete(table).where(table.c.minute < minute - 1, table.c.replica == replica))
                await tx.execute(delete(table).where(table.c.minute < minute - LEFT_BEHIND))
                self._cleaned = minute
        return found


def _each(values: Sequence[Any], kind: type[TypeEngine[Any]]) -> ColumnElement[Any]:
    """A row for each value; several of these in one SELECT go side by side."""
    return func.unnest(cast(values, ARRAY(kind)))


def _key(row: Any) -> Key:
    scopes = frozenset(Scope(name) for name in row.scopes)
    return Key(row.id, row.tenant, scopes, row.created_at, row.expires_at, row.revoked_at, row.former_until)

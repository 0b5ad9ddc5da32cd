"""The catalogue's history in PostgreSQL. Rows are added, never changed; the primary key of `catalog_revisions` lets
one of two writers on the same base win."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, insert, select, tuple_
from sqlalchemy.dialects.postgresql import distinct_on

from libs.faults.fault import Fault
from libs.kernel.canonical import plain
from libs.store.database import Database
from services.routing.domain.catalog import Catalog
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import Holdings, ObjectRevision
from services.routing.domain.thaw import thaw
from services.routing.store.catalog_tables import catalog_objects as objects
from services.routing.store.catalog_tables import catalog_revisions as revisions


class PostgresCatalogStore:
    """Implements `ports.CatalogStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def revision(self) -> int:
        """See the port."""
        async with self._database.read() as tx:
            return int((await tx.execute(select(func.coalesce(func.max(revisions.c.revision), 0)))).scalar_one())

    async def holdings(self) -> Holdings:
        """See the port."""
        newest = select(revisions.c.revision, revisions.c.currency, revisions.c.fx)
        async with self._database.read() as tx:
            settings = (await tx.execute(newest.order_by(revisions.c.revision.desc()).limit(1))).one_or_none()
            heads = [_revision_of(row) for row in (await tx.execute(_heads())).all()]
        if settings is None:
            return Holdings()
        fx = thaw(Holdings, {"fx": settings.fx}).fx
        return Holdings(settings.revision, settings.currency, fx, {head.key: head for head in heads})

    async def snapshot(self, revision: int) -> Catalog | None:
        """See the port."""
        wanted = select(revisions.c.snapshot).where(revisions.c.revision == revision)
        async with self._database.read() as tx:
            found = (await tx.execute(wanted)).scalar_one_or_none()
        return None if found is None else thaw(Catalog, found)

    async def commit(self, base: int, holdings: Holdings, catalog: Catalog, news: Sequence[ObjectRevision]) -> None:
        """See the port."""
        now = max((item.created_at for item in news), default=None)
        row = {
            "revision": base + 1,
            "currency": holdings.currency,
            "fx": plain(holdings.fx),
            "snapshot": plain(catalog),
            "created_at": func.now() if now is None else now,
        }
        try:
            async with self._database.unit() as tx:
                found = (await tx.execute(select(func.coalesce(func.max(revisions.c.revision), 0)))).scalar_one()
                if found != base:
                    raise _conflict(base, found)
                await tx.execute(insert(revisions).values(row))
                if news:
                    await tx.execute(insert(objects), [_row_of(item) for item in news])
        except Fault as fault:
            if fault.code == "conflict":
                raise _conflict(base, base + 1) from fault
            raise

    async def object(self, kind: ObjectKind, object_id: str, revision: int = 0) -> ObjectRevision | None:
        """See the port."""
        wanted = select(objects).where(objects.c.kind == str(kind), objects.c.id == object_id)
        if revision:
            wanted = wanted.where(objects.c.revision == revision)
        async with self._database.read() as tx:
            row = (await tx.execute(wanted.order_by(objects.c.revision.desc()).limit(1))).one_or_none()
        return None if row is None else _revision_of(row)

    async def objects(
        self, kind: ObjectKind | None, include_retired: bool, after: tuple[str, str] | None, count: int
    ) -> Sequence[ObjectRevision]:
        """See the port."""
        heads = _heads().subquery()
        wanted = select(heads).order_by(heads.c.kind.collate("C"), heads.c.id).limit(count)
        if kind is not None:
            wanted = wanted.where(heads.c.kind == str(kind))
        if not include_retired:
            wanted = wanted.where(heads.c.retired.is_(False))
        if after is not None:
            wanted = wanted.where(tuple_(heads.c.kind.collate("C"), heads.c.id) > tuple_(*after))
        async with self._database.read() as tx:
            return [_revision_of(row) for row in (await tx.execute(wanted)).all()]

    async def first_declared(self, kind: ObjectKind) -> Mapping[str, datetime]:
        """See the port."""
        wanted = select(objects.c.id, objects.c.created_at).where(objects.c.kind == str(kind), objects.c.revision == 1)
        async with self._database.read() as tx:
            return {row.id: row.created_at for row in (await tx.execute(wanted)).all()}


def _heads() -> Select[Any]:
    """The newest revision of every object."""
    return (
        select(objects)
        .ext(distinct_on(objects.c.kind, objects.c.id))
        .order_by(objects.c.kind, objects.c.id, objects.c.revision.desc())
    )


def _conflict(base: int, found: int) -> Fault:
    return Fault.of("revision_conflict", f"the catalogue is at revision {found}, the change was made on {base}")


def _row_of(item: ObjectRevision) -> dict[str, Any]:
    return {
        "kind": str(item.kind),
        "id": item.id,
        "revision": item.revision,
        "spec": dict(item.spec),
        "enabled": item.enabled,
        "published": item.published,
        "retired": item.retired,
        "admin": item.admin,
        "note": item.note,
        "catalog_revision": item.catalog_revision,
        "created_at": item.created_at,
    }


def _revision_of(row: Row[Any]) -> ObjectRevision:
    return ObjectRevision(
        kind=ObjectKind(row.kind),
        id=row.id,
        revision=row.revision,
        spec=row.spec,
        created_at=row.created_at,
        catalog_revision=row.catalog_revision,
        enabled=row.enabled,
        published=row.published,
        retired=row.retired,
        admin=row.admin,
        note=row.note,
    )

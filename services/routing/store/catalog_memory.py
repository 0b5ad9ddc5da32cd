"""The catalogue's history in memory, for tests and simulation."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from libs.faults.fault import Fault
from services.routing.domain.catalog import Catalog
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import Holdings, Key, ObjectRevision


class MemoryCatalogStore:
    """Implements `ports.CatalogStore`. Nothing here awaits, so every method is one step."""

    def __init__(self) -> None:
        self._holdings = Holdings()
        self._snapshots: dict[int, Catalog] = {}
        self._revisions: dict[Key, list[ObjectRevision]] = {}

    async def revision(self) -> int:
        """See the port."""
        return self._holdings.revision

    async def holdings(self) -> Holdings:
        """See the port."""
        return self._holdings

    async def snapshot(self, revision: int) -> Catalog | None:
        """See the port."""
        return self._snapshots.get(revision)

    async def commit(self, base: int, holdings: Holdings, catalog: Catalog, news: Sequence[ObjectRevision]) -> None:
        """See the port."""
        if self._holdings.revision != base:
            found = self._holdings.revision
            raise Fault.of("revision_conflict", f"the catalogue is at revision {found}, the change was made on {base}")
        for item in news:
            self._revisions.setdefault(item.key, []).append(item)
        self._snapshots[base + 1] = catalog
        self._holdings = holdings

    async def object(self, kind: ObjectKind, object_id: str, revision: int = 0) -> ObjectRevision | None:
        """See the port."""
        found = self._revisions.get((kind, object_id), [])
        if not revision:
            return found[-1] if found else None
        return next((item for item in found if item.revision == revision), None)

    async def objects(
        self, kind: ObjectKind | None, include_retired: bool, after: tuple[str, str] | None, count: int
    ) -> Sequence[ObjectRevision]:
        """See the port."""
        wanted = [
            head
            for key, head in sorted(self._holdings.heads.items())
            if (kind is None or head.kind is kind)
            and (include_retired or not head.retired)
            and (after is None or (str(key[0]), key[1]) > after)
        ]
        return wanted[:count]

    async def first_declared(self, kind: ObjectKind) -> Mapping[str, datetime]:
        """See the port."""
        return {key[1]: found[0].created_at for key, found in self._revisions.items() if key[0] is kind}

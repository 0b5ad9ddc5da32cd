"""Verifications in PostgreSQL: a row for each, whole as JSON, with the columns that are looked for."""

from collections.abc import Mapping

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import distinct_on, insert

from libs.kernel.canonical import plain
from libs.store.database import Database
from services.routing.domain.thaw import thaw
from services.routing.domain.verification import Verification, VerificationState
from services.routing.store.catalog_tables import verifications


class PostgresVerifications:
    """Implements `ports.VerificationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, verification: Verification) -> Verification:
        """See the port."""
        row = {"id": verification.id, "supply": verification.supply, "record": plain(verification)}
        async with self._database.unit() as tx:
            await tx.execute(insert(verifications).values(row).on_conflict_do_nothing())
        return await self.get(verification.id) or verification

    async def get(self, verification_id: str) -> Verification | None:
        """See the port."""
        wanted = select(verifications.c.record).where(verifications.c.id == verification_id)
        async with self._database.read() as tx:
            record = (await tx.execute(wanted)).scalar_one_or_none()
        return None if record is None else thaw(Verification, record)

    async def settle(self, verification: Verification) -> Verification:
        """See the port."""
        running = (verifications.c.id == verification.id, verifications.c.finished_at.is_(None))
        ended = {"record": plain(verification), "finished_at": verification.finished_at}
        if verification.state is not VerificationState.RUNNING:
            async with self._database.unit() as tx:
                await tx.execute(update(verifications).where(*running).values(ended))
        return await self.get(verification.id) or verification

    async def newest(self) -> Mapping[str, Verification]:
        """See the port."""
        wanted = (
            select(verifications.c.supply, verifications.c.record)
            .ext(distinct_on(verifications.c.supply))
            .where(verifications.c.finished_at.is_not(None))
            .order_by(verifications.c.supply, verifications.c.finished_at.desc(), verifications.c.id.desc())
        )
        async with self._database.read() as tx:
            return {row.supply: thaw(Verification, row.record) for row in (await tx.execute(wanted)).all()}

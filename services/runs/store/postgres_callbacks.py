"""Callbacks and secrets in PostgreSQL. A message is written in the transaction of the event that it tells."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.store.database import Database
from libs.store.sealing import Seal
from services.runs.domain.callbacks import Callback, CallbackState, callback_of
from services.runs.domain.run import Event, Run
from services.runs.store.tables import callbacks, webhook_secrets


async def write_callback(tx: AsyncConnection, run: Run, events: Sequence[Event]) -> None:
    """Keep the message about the Run's end, if it has ended and names a URL."""
    callback = callback_of(run, events)
    if callback is not None:
        values = {column.name: getattr(callback, column.name) for column in callbacks.columns}
        await tx.execute(insert(callbacks).values(**{**values, "state": callback.state.value}))


class PostgresCallbacks:
    """Implements `ports.Callbacks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, now: datetime, until: datetime, busy: Sequence[str], size: int) -> list[Callback]:
        """See the port."""
        due = (
            select(callbacks.c.id)
            .where(callbacks.c.state == CallbackState.PENDING.value, callbacks.c.next_at <= now)
            .where(callbacks.c.tenant.not_in(busy))
            .order_by(callbacks.c.next_at, callbacks.c.id)
            .limit(size)
            .with_for_update(skip_locked=True)
            .cte("due")
        )
        claiming = update(callbacks).where(callbacks.c.id == due.c.id)
        changed = claiming.values(attempts=callbacks.c.attempts + 1, next_at=until).returning(*callbacks.c)
        async with self._database.unit() as tx:
            rows = (await tx.execute(changed)).all()
        return [_callback(row) for row in rows]

    async def record(self, callback: Callback) -> bool:
        """See the port."""
        mine = (callbacks.c.id == callback.id, callbacks.c.attempts == callback.attempts)
        guarded = update(callbacks).where(*mine, callbacks.c.state == CallbackState.PENDING.value)
        values = {name: getattr(callback, name) for name in ("last_error", "next_at", "finished_at")}
        async with self._database.unit() as tx:
            return bool((await tx.execute(guarded.values(state=callback.state.value, **values))).rowcount)

    async def of_run(self, run_id: str) -> list[Callback]:
        """See the port."""
        query = select(callbacks).where(callbacks.c.run_id == run_id).order_by(callbacks.c.id.desc())
        async with self._database.read() as tx:
            return [_callback(row) for row in (await tx.execute(query)).all()]


class PostgresSecrets:
    """Implements `ports.WebhookSecrets`."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal

    async def add(self, tenant: str, secret_id: str, text: str, now: datetime) -> None:
        """See the port."""
        row = {"id": secret_id, "tenant": tenant, "sealed": self._seal.closed(text), "created_at": now}
        async with self._database.unit() as tx:
            await tx.execute(insert(webhook_secrets).values(row))

    async def of(self, tenant: str, size: int) -> list[str]:
        """See the port."""
        mine = select(webhook_secrets.c.sealed).where(webhook_secrets.c.tenant == tenant)
        async with self._database.read() as tx:
            rows = (await tx.execute(mine.order_by(webhook_secrets.c.id.desc()).limit(size))).scalars().all()
        return [self._seal.opened(sealed) for sealed in rows]


def _callback(row: Any) -> Callback:
    return Callback(**{**row._mapping, "state": CallbackState(row.state)})

"""The unit of work: one transaction, committed at the edge of an RPC or a tick and nowhere else.

    async with database.unit() as tx:           # writes; READ COMMITTED; commit at the end, rollback on any exception
        await tx.execute(insert(tasks).values(...))
    async with database.read() as tx:           # one snapshot, read only
        rows = (await tx.execute(select(tasks))).mappings().all()
    await database.run(work)                    # `await work(tx)`, run again as a whole after a deadlock
    rows = await database.lane().fetch("...")   # a statement that is its own transaction: see libs.store.lane

Laws:
- nothing but database work belongs inside a unit: no RPC, no sleep, no file;
- rows are locked in one order (by primary key), updates are guarded (`WHERE epoch = :epoch`);
- an insert that may come twice says `ON CONFLICT`; a Fault `conflict` is for the caller's mistake, not for repeats.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import greenlet_spawn

from libs.store.engine import Bounds, make_engine
from libs.store.errors import DRIVER_ERRORS, is_retryable, translate
from libs.store.lane import Lane

Result = TypeVar("Result")
ATTEMPTS = 4
FIRST_PAUSE_S = 0.005


class Database:
    """One context's door to PostgreSQL. Connections are made when needed, in the loop that uses them."""

    def __init__(self, url: str, *, schema: str, bounds: Bounds | None = None) -> None:
        """`url` is any PostgreSQL address, `schema` the context's own. ValueError if the address is malformed."""
        self.url = url
        self.schema = schema
        bounds = bounds or Bounds()
        self._engine = make_engine(url, schema=schema, bounds=bounds)
        self._lanes: list[Lane] = []
        self._quiet_s = bounds.quiet_s
        self._peak = 0
        self._look_at = 0.0

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[AsyncConnection]:
        """One transaction. Raises the Faults of `errors`; deadlocks are not retried here, see `run`."""
        try:
            async with self._engine.begin() as connection:
                self._note()
                yield connection
        except DRIVER_ERRORS as error:
            raise translate(error) from error
        await self._trim()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """One read-only snapshot: several statements see the same moment. A write inside it fails."""
        try:
            async with self._engine.connect() as connection:
                await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                async with connection.begin():
                    self._note()
                    yield connection
        except DRIVER_ERRORS as error:
            raise translate(error) from error
        await self._trim()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[Result]], *, attempts: int = ATTEMPTS) -> Result:
        """Run `work` in a unit; after a deadlock or serialization failure run it again, `attempts` times in all.

        `work` must have no effect outside its transaction. Nothing else is ever retried: after a lost connection
        nobody knows whether the commit took place.
        """
        for attempt in range(1, attempts):
            try:
                async with self._engine.begin() as connection:
                    return await work(connection)
            except DRIVER_ERRORS as error:
                if not is_retryable(error):
                    raise translate(error) from error
            await asyncio.sleep(FIRST_PAUSE_S * 2**attempt)
        async with self.unit() as connection:
            return await work(connection)

    def lane(self, *, by_index: bool = False) -> Lane:
        """A connection of one's own for statements that are transactions of their own; closed with the database.

        `by_index`: they find rows by indexes alone. Their plans are made once, on a new database over empty tables, and
        would read those from end to end, however many rows come, until the database counts them a minute later.
        """
        lane = Lane(self._engine, by_index=by_index)
        self._lanes.append(lane)
        return lane

    async def ping(self) -> None:
        """Return if the database answers; raises Fault governance_backend_down if not."""
        async with self.read() as connection:
            await connection.execute(text("SELECT 1"))

    @property
    def connections(self) -> int:
        """Connections that are open now, in use or not."""
        pool: Any = self._engine.pool
        return int(pool.checkedin() + pool.checkedout())

    def _note(self) -> None:
        """Remember how many connections were needed at once."""
        pool: Any = self._engine.pool
        self._peak = max(self._peak, pool.checkedout())

    async def _trim(self) -> None:
        """After a burst the pool would keep its connections for ever; each is a process of the database.

        Now and then, if more are open than were needed lately, they are closed. The next use opens its own. Only while
        none is in use, and the pool is changed before anything is awaited: a connection that came back to a pool that
        is gone would never be closed.
        """
        now = asyncio.get_running_loop().time()
        pool: Any = self._engine.pool
        if now < self._look_at or pool.checkedout():
            return
        peak, self._peak, self._look_at = self._peak, 0, now + self._quiet_s
        if pool.checkedin() > peak:
            self._engine.sync_engine.dispose(close=False)
            await greenlet_spawn(pool.dispose)

    async def close(self) -> None:
        """Close every connection. The database may be used again; it opens new ones."""
        for lane in self._lanes:
            await lane.close()
        await self._engine.dispose()

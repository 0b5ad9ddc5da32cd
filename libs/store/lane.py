"""A lane: one connection kept aside for statements that are each a transaction of their own.

    lane = database.lane()
    rows = await lane.fetch("SELECT * FROM decide($1)", group)   # one round trip: no BEGIN, no COMMIT, no pool

For the one hot statement of a context that gathers its callers. Statements follow one another; the connection is opened
when first needed, and anew after it broke.
"""

import asyncio
from typing import Any

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.store.engine import MARGIN_S
from libs.store.errors import DRIVER_ERRORS, is_retryable, translate

ATTEMPTS = 4
FIRST_PAUSE_S = 0.005


async def fetch_within(tx: AsyncConnection, sql: str, *values: object, limit_s: float | None = None) -> list[Any]:
    """The rows of a lane's statement as a part of an open unit of work, which has written something before.

    `limit_s`: what it and the rest of the unit may take by statement, in place of the limit of the engine.
    """
    if limit_s is not None:
        await tx.execute(text(f"SET LOCAL statement_timeout = {round(limit_s * 1000)}"))
    driver = (await tx.get_raw_connection()).driver_connection
    assert driver is not None
    try:
        return list(await driver.fetch(sql, *values, timeout=None if limit_s is None else limit_s + MARGIN_S))
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise translate(error) from error


class Lane:
    """Belongs to one event loop. It takes no place in the pool."""

    def __init__(self, engine: AsyncEngine, *, by_index: bool = False) -> None:
        self._engine = engine
        self._by_index = by_index
        self._connection: AsyncConnection | None = None
        self._driver: Any = None
        self._turn = asyncio.Lock()

    async def fetch(self, sql: str, *values: object) -> list[Any]:
        """The rows of one statement in the driver's own spelling (`$1`), read by column name.

        Run again after a deadlock or serialization failure, as `Database.run` does. Raises the Faults of `errors`;
        after a lost connection nobody knows whether the statement took place.
        """
        async with self._turn:
            for attempt in range(1, ATTEMPTS):
                try:
                    return await self._fetch(sql, values)
                except asyncpg.PostgresError as error:
                    if not is_retryable(error):
                        raise translate(error) from error
                await asyncio.sleep(FIRST_PAUSE_S * 2**attempt)
            try:
                return await self._fetch(sql, values)
            except asyncpg.PostgresError as error:
                raise translate(error) from error

    async def close(self) -> None:
        """Close the connection; a later fetch opens another."""
        async with self._turn:
            connection, self._connection, self._driver = self._connection, None, None
            if connection is not None:
                await connection.close()

    async def _fetch(self, sql: str, values: tuple[object, ...]) -> list[Any]:
        try:
            if self._driver is None or self._driver.is_closed():
                await self._open()
            return list(await self._driver.fetch(sql, *values))
        except (*DRIVER_ERRORS, asyncpg.InterfaceError) as error:
            self._driver = None  # whatever it was, the next statement has a connection that nothing has happened to
            raise translate(error) from error

    async def _open(self) -> None:
        # Forgotten before anything is awaited: should no new connection be had, the next try must not meet this one.
        broken, self._connection, self._driver = self._connection, None, None
        if broken is not None:
            await broken.invalidate()
            await broken.close()
        self._connection = await self._engine.connect()
        self._driver = (await self._connection.get_raw_connection()).driver_connection
        await self._connection.run_sync(lambda connection: connection.detach())
        if self._by_index:
            await self._driver.execute("SET enable_seqscan = off")

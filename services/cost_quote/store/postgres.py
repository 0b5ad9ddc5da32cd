"""Price books in PostgreSQL. A book never changes, so the newest is parsed once and kept."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from libs.store.database import Database
from libs.store.gathering import Gathering
from services.cost_quote.domain.quoting import PriceBook
from services.cost_quote.store.books import price_book
from services.cost_quote.store.tables import price_books


class PostgresPriceBooks:
    """Implements `ports.PriceBooks`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached = PriceBook()
        self._looks: Gathering[int, PriceBook] = Gathering(self._look_for_all, identity=lambda number: number)
        self._numbers = itertools.count()

    async def current(self) -> PriceBook:
        """See the port. Asks for the newest revision each time, once for all that ask at once, and reads the book only
        when it is a new one."""
        return await self._looks.ask(next(self._numbers))

    async def _look_for_all(self, asks: Sequence[int]) -> Sequence[PriceBook | Exception]:
        return [await self._look()] * len(asks)

    async def _look(self) -> PriceBook:
        async with self._database.read() as tx:
            newest = (await tx.execute(select(func.max(price_books.c.revision)))).scalar_one()
            if newest is None or newest == self._cached.revision:
                return self._cached
            row = (await tx.execute(select(price_books).where(price_books.c.revision == newest))).one()
        self._cached = price_book(row.revision, row.currency, row.fx, row.specs)
        return self._cached

    async def add(self, revision: int, currency: str, fx: Mapping[str, str], specs: list[Mapping[str, Any]]) -> int:
        """See the port."""
        statement = insert(price_books).values(revision=revision, currency=currency, fx=dict(fx), specs=list(specs))
        async with self._database.unit() as tx:
            await tx.execute(statement.on_conflict_do_nothing())
            return int((await tx.execute(select(func.max(price_books.c.revision)))).scalar_one())

    async def specs(self) -> tuple[int, str, list[Mapping[str, Any]]]:
        """See the port."""
        newest = select(price_books).order_by(price_books.c.revision.desc()).limit(1)
        async with self._database.read() as tx:
            row = (await tx.execute(newest)).one_or_none()
        return (row.revision, row.currency, list(row.specs)) if row else (0, PriceBook().currency, [])

"""Price books in PostgreSQL. A book never changes, so the newest is parsed once and kept."""

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.dialects.postgresql import insert

from libs.store.database import Database
from libs.store.gathering import Gathering
from services.cost_quote.domain.quoting import PriceBook
from services.cost_quote.store.books import price_book
from services.cost_quote.store.tables import price_books

OLDER_KEPT = 4


class PostgresPriceBooks:
    """Implements `ports.PriceBooks`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached = PriceBook()
        self._older: OrderedDict[int, PriceBook] = OrderedDict()
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

    async def at(self, revision: int) -> PriceBook | None:
        """See the port. A few are kept: what is in flight was quoted by few revisions."""
        if revision not in self._older:
            book = await self._first(price_books.c.revision == revision)
            if book is None:
                return None
            self._older[revision] = book
            if len(self._older) > OLDER_KEPT:
                self._older.popitem(last=False)
        return self._older[revision]

    async def last_with(self, rule: str, version: int) -> PriceBook | None:
        """See the port."""
        return await self._first(price_books.c.specs.contains([{"id": rule, "version": version}]))

    async def _first(self, condition: ColumnElement[bool]) -> PriceBook | None:
        """The newest book of which it holds."""
        newest = select(price_books).where(condition).order_by(price_books.c.revision.desc()).limit(1)
        async with self._database.read() as tx:
            row = (await tx.execute(newest)).one_or_none()
        return price_book(row.revision, row.currency, row.fx, row.specs) if row else None

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

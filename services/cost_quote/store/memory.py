"""Price books in memory: the same contract, gone with the process."""

from collections.abc import Mapping
from typing import Any

from services.cost_quote.domain.quoting import PriceBook
from services.cost_quote.store.books import price_book


class MemoryPriceBooks:
    """Implements `ports.PriceBooks`."""

    def __init__(self) -> None:
        self._books: dict[int, tuple[str, Mapping[str, str], list[Mapping[str, Any]]]] = {}
        self._current = PriceBook()

    async def current(self) -> PriceBook:
        """See the port."""
        return self._current

    async def add(self, revision: int, currency: str, fx: Mapping[str, str], specs: list[Mapping[str, Any]]) -> int:
        """See the port."""
        self._books.setdefault(revision, (currency, dict(fx), list(specs)))
        if revision > self._current.revision:
            self._current = price_book(revision, currency, fx, specs)
        return self._current.revision

    async def at(self, revision: int) -> PriceBook | None:
        """See the port."""
        return price_book(revision, *self._books[revision]) if revision in self._books else None

    async def last_with(self, rule: str, version: int) -> PriceBook | None:
        """See the port."""
        for revision in sorted(self._books, reverse=True):
            if any((spec["id"], spec["version"]) == (rule, version) for spec in self._books[revision][2]):
                return await self.at(revision)
        return None

    async def specs(self) -> tuple[int, str, list[Mapping[str, Any]]]:
        """See the port."""
        revision = self._current.revision
        currency, _, specs = self._books.get(revision, (self._current.currency, {}, []))
        return revision, currency, specs

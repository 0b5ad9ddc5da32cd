"""What cost_quote needs of its store."""

from collections.abc import Mapping
from typing import Any, Protocol

from services.cost_quote.domain.quoting import PriceBook


class PriceBooks(Protocol):
    """Every price book that was ever told, by catalogue revision; none is changed after it was told."""

    async def current(self) -> PriceBook:
        """The book of the highest revision; an empty book of revision 0 before any was told."""
        ...

    async def add(self, revision: int, currency: str, fx: Mapping[str, str], specs: list[Mapping[str, Any]]) -> int:
        """Keep a book unless that revision or a later one is known; answers the highest revision known.

        Specs are declarations as in the catalogue file and have been parsed before. Adding one revision twice, also
        from two processes at once, keeps the first.
        """
        ...

    async def at(self, revision: int) -> PriceBook | None:
        """The book of that revision as it was told, for ever; None where none was told."""
        ...

    async def last_with(self, rule: str, version: int) -> PriceBook | None:
        """The book of the highest revision that has that version of that rule; None where none ever had it."""
        ...

    async def specs(self) -> tuple[int, str, list[Mapping[str, Any]]]:
        """(revision, currency, declarations in the order of their ids) of the current book."""
        ...

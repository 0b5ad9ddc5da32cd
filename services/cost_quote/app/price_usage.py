"""Price what calls really used, by the rules that quoted them."""

from collections.abc import Sequence

from libs.faults.fault import Fault
from services.cost_quote.domain.pricing import Unpriced
from services.cost_quote.domain.quoting import PriceBook, Quote, converted
from services.cost_quote.domain.settling import Used, settle
from services.cost_quote.ports import PriceBooks

MOST_ITEMS = 1_000


async def price_usage(books: PriceBooks, items: Sequence[Used]) -> list[Quote | Unpriced]:
    """A price or a reason for each, in their order. Fault validation_failed for more than `MOST_ITEMS`."""
    if len(items) > MOST_ITEMS:
        raise Fault.invalid(("/items", f"has {len(items)} items; send at most {MOST_ITEMS} at once"))
    shelf = Shelf(books)
    return [await _priced(shelf, item) for item in items]


class Shelf:
    """Books that one question needs, each fetched once."""

    def __init__(self, books: PriceBooks) -> None:
        self._books = books
        self._last_with: dict[tuple[str, int], PriceBook | None] = {}
        self._by_revision: dict[int, PriceBook | None] = {}

    async def book_of(self, item: Used) -> PriceBook | None:
        """The book that quoted it, or the newest that has the version where that one is not known."""
        book = await self._at(item.revision) if item.revision else None
        if book is None or not _holds(book, item):
            key = (item.rule, item.version)
            if key not in self._last_with:
                self._last_with[key] = await self._books.last_with(*key)
            book = self._last_with[key]
        return book

    async def _at(self, revision: int) -> PriceBook | None:
        if revision not in self._by_revision:
            self._by_revision[revision] = await self._books.at(revision)
        return self._by_revision[revision]


async def _priced(shelf: Shelf, item: Used) -> Quote | Unpriced:
    book = await shelf.book_of(item)
    if book is None:
        return Unpriced(f"no version {item.version} of a price rule {item.rule!r} was ever in force")
    rule = book.rules[item.rule]
    return converted(book, rule, settle(rule, item.request, item.usage, item.at))


def _holds(book: PriceBook, item: Used) -> bool:
    rule = book.rules.get(item.rule)
    return rule is not None and rule.version == item.version

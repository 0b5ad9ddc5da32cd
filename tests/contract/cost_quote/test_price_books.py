"""Every store of price books keeps the same contract."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from libs.store.database import Database
from libs.store.migrations import migrate
from libs.store.upgrading import differences
from services.cost_quote.compose import SCHEMA, VERSIONS
from services.cost_quote.ports import PriceBooks
from services.cost_quote.store.memory import MemoryPriceBooks
from services.cost_quote.store.postgres import PostgresPriceBooks
from services.cost_quote.store.tables import metadata


def spec(rate: str) -> dict[str, object]:
    """One declaration."""
    return {"id": "s", "version": 1, "currency": "CNY", "billing_mode": "per_second", "rate": rate}


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Where the store under test lies."""
    return "memory:" if request.param == "memory" else str(request.getfixturevalue("pg_url"))


@pytest.fixture
async def books(store_url: str) -> AsyncIterator[PriceBooks]:
    """An empty store."""
    if store_url == "memory:":
        yield MemoryPriceBooks()
        return
    await migrate(store_url, schema=SCHEMA, versions=VERSIONS)
    database = Database(store_url, schema=SCHEMA)
    try:
        yield PostgresPriceBooks(database)
    finally:
        await database.close()


async def test_empty(books: PriceBooks) -> None:
    """COST-4: before anything was told there is no rule, hence no price."""
    book = await books.current()
    assert (book.revision, dict(book.rules)) == (0, {})
    assert await books.specs() == (0, "CNY", [])


async def test_the_newest_book_is_in_force(books: PriceBooks) -> None:
    """COST-3: rules and rates are versioned by the catalogue's revision."""
    assert await books.add(1, "CNY", {"USD": "7.00"}, [spec("1.00")]) == 1
    assert await books.add(2, "CNY", {"USD": "7.10"}, [spec("1.20")]) == 2
    book = await books.current()
    assert (book.revision, book.rules["s"].rate, book.fx["USD"]) == (2, Decimal("1.20"), Decimal("7.10"))
    assert await books.specs() == (2, "CNY", [spec("1.20")])


async def test_late_and_repeated_tellings_change_nothing(books: PriceBooks) -> None:
    """COST-3: a book never changes after it was told, and an older revision never wins."""
    await books.add(5, "CNY", {}, [spec("5.00")])
    assert await books.add(5, "CNY", {}, [spec("9.00")]) == 5
    assert await books.add(4, "CNY", {}, [spec("4.00")]) == 5
    assert (await books.current()).rules["s"].rate == Decimal("5.00")


async def test_migrations_say_what_the_tables_are(pg_url: str) -> None:
    """OPS-7: the migrated schema and the declared tables are the same."""
    await migrate(pg_url, schema=SCHEMA, versions=VERSIONS)
    assert await differences(pg_url, schema=SCHEMA, metadata=metadata) == []


async def test_nobody_is_answered_with_a_book_that_was_superseded_before_the_question(books: PriceBooks) -> None:
    """COST-3: many ask at once, also while another look is under way; each sees what had been told when it asked."""
    for revision in range(1, 6):
        before = [asyncio.create_task(books.current()) for _ in range(8)]
        await asyncio.sleep(0)
        await books.add(revision, "CNY", {}, [spec(f"{revision}.00")])
        after = await asyncio.gather(*(books.current() for _ in range(8)))
        assert {book.revision for book in after} == {revision}
        assert {book.revision for book in await asyncio.gather(*before)} <= {revision - 1, revision}


async def test_retired_versions_are_kept(books: PriceBooks) -> None:
    """COST-3: a book reads the same for ever, and the newest book with a version is found after it was retired."""
    await books.add(1, "CNY", {"USD": "7.00"}, [spec("1.00")])
    await books.add(2, "CNY", {"USD": "7.10"}, [spec("1.10")])
    await books.add(3, "CNY", {"USD": "7.20"}, [{**spec("9.00"), "version": 2}])
    first = await books.at(1)
    assert first is not None
    assert (first.rules["s"].rate, first.fx["USD"]) == (Decimal("1.00"), Decimal("7.00"))
    last = await books.last_with("s", 1)
    assert last is not None
    assert (last.revision, last.rules["s"].rate) == (2, Decimal("1.10"))
    assert await books.at(9) is None
    assert await books.last_with("s", 3) is None
    assert await books.last_with("t", 1) is None


async def test_many_older_books_read_the_same_again(books: PriceBooks) -> None:
    """COST-3: more books than a process keeps in memory are each as they were told."""
    for revision in range(1, 9):
        await books.add(revision, "CNY", {}, [spec(f"{revision}.00")])
    for _ in range(2):
        found = [await books.at(revision) for revision in range(1, 9)]
        assert [book and book.rules["s"].rate for book in found] == [Decimal(rate) for rate in range(1, 9)]

"""What a page may be asked for with."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.faults.fault import Fault
from libs.rpc.paging import FIRST_LOOK, id_in, number_in, page_size, page_within


def test_a_page_has_one_to_a_thousand_rows() -> None:
    """Nothing said is the default, more than the largest is the largest."""
    assert [page_size(asked) for asked in (0, 1, 1000, 1001, 2**31 - 1)] == [100, 1, 1000, 1000, 1000]
    assert page_size(0, default=200) == 200


@pytest.mark.parametrize("asked", [-1, -(2**31)])
def test_fewer_than_no_rows_are_refused(asked: int) -> None:
    """EDG-3: no store is asked for a negative number of rows."""
    with pytest.raises(Fault) as caught:
        page_size(asked)
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/page_size")


@pytest.mark.parametrize("token", ["-1", "x", "1.5", "\u0663", "9" * 19, "9" * 5000])
def test_a_token_that_nobody_gave_is_refused(token: str) -> None:
    """EDG-2, EDG-3: what is no number of ours is malformed, however long it is."""
    with pytest.raises(Fault, match="page_token") as caught:
        number_in(token)
    assert caught.value.code == "malformed_request"


@pytest.mark.parametrize("token", ["x", "garbage", "-" * 26, "\u0663" * 26, "A" * 27])
def test_a_token_that_is_no_id_is_refused(token: str) -> None:
    """EDG-2: a list that goes by ids does not begin anew, or anywhere, at what no page gave."""
    with pytest.raises(Fault, match="page_token") as caught:
        id_in(token)
    assert caught.value.code == "malformed_request"
    assert (id_in(""), id_in("A" * 26)) == ("", "A" * 26)


def test_a_token_is_the_number_in_it() -> None:
    """Without one a list begins at its beginning."""
    assert (number_in(""), number_in("100")) == (0, 100)


class Row:
    """A message of so many bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    def ByteSize(self) -> int:
        """As protobuf spells it."""
        return self.size


class Shelf:
    """Rows by a token that is a place; `looks` are how many were asked for, `taken` the bytes of each look."""

    def __init__(self, *sizes: int) -> None:
        self.rows = [Row(size) for size in sizes]
        self.taken: list[int] = []

    async def look(self, token: str, most: int) -> tuple[list[Row], str]:
        """See `Look`."""
        begin = number_in(token)
        some = self.rows[begin : begin + most]
        self.taken.append(sum(row.size for row in some))
        end = begin + len(some)
        return some, str(end) if end < len(self.rows) else ""

    async def pages(self, size: int, most: int) -> list[list[int]]:
        """The sizes of the rows of every page."""
        pages, token = [], ""
        while True:
            page, token = await page_within(self.look, token, size, most)
            pages.append([row.size for row in page])
            if not token:
                return pages


@pytest.mark.parametrize(
    "sizes, size, most, pages",
    [
        ([], 3, 9, [[]]),
        ([1, 1, 1], 3, 9, [[1, 1, 1]]),
        ([1, 1, 1, 1], 3, 9, [[1, 1, 1], [1]]),
        ([4, 4, 4, 4], 9, 9, [[4, 4], [4, 4]]),
        ([99, 1, 99, 99], 9, 9, [[99], [1], [99], [99]]),
        ([1, 8, 1], 9, 9, [[1, 8], [1]]),
        ([0, 0, 9, 1], 9, 9, [[0, 0, 9], [1]]),
        ([1] * 30, 1000, 25, [[1] * 25, [1] * 5]),
    ],
)
async def test_a_page_ends_before_it_has_too_many_bytes(
    sizes: list[int], size: int, most: int, pages: list[list[int]]
) -> None:
    """EDG-3: rows and bytes bound a page; every row comes once, in order, and one that is too large comes alone."""
    assert await Shelf(*sizes).pages(size, most) == pages


async def test_large_rows_are_not_all_read_for_a_page_of_few() -> None:
    """EDG-3: a page of a thousand of the largest rows looks at ten at once, and small ones at many."""
    large = Shelf(*[100] * 1000)
    await page_within(large.look, "", 1000, 1500)
    assert max(large.taken) <= FIRST_LOOK * 100
    small = Shelf(*[1] * 1000)
    page, _ = await page_within(small.look, "", 1000, 10_000)
    assert (len(page), len(small.taken)) == (1000, 2)


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 30), st.integers(0, 40))
def test_pages_are_the_list_whatever_its_rows_have(sizes: list[int], size: int, most: int) -> None:
    """EDG-3: no row is lost or comes twice, and only a page of one row has more bytes than are allowed."""
    pages = asyncio.run(Shelf(*sizes).pages(size, most))
    assert [row for page in pages for row in page] == sizes
    assert all(len(page) <= size and (sum(page) <= most or len(page) == 1) for page in pages)

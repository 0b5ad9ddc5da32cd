"""Pages of people's desks, as they are answered."""

from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.rpc.paging import LARGEST_PAGE_BYTES
from pointsman.runs.v1.dead_letter_service_pb2 import ListDeadLettersRequest
from pointsman.runs.v1.review_service_pb2 import ListReviewsRequest
from services.runs.servicer.desks import DeadLetterServicer, ReviewServicer
from tests.unit.runs.fakes import OUT_OF_ORDER
from tests.unit.runs.test_gates import FRAME, house, production

LARGE = "x" * 1_000_000
MANY = 5


def frames(**fields: Any) -> list[dict[str, Any]]:
    """Pictures of a very long description each."""
    return [{**FRAME, **fields, "id": f"f{number}", "input": {"prompt": LARGE}} for number in range(MANY)]


async def test_a_page_of_large_reviews_fits_a_message() -> None:
    """EDG-3, HUMAN-1: however large context packs are, every page can be read, and together they hold each once."""
    home = house()
    run = await home.carry(await home.produce(production(*frames(budget={"cost": "0.10"}))))
    asked = [review.id for review in await home.reviews(run)]
    desk, request, seen = ReviewServicer(home.people, lambda: None), ListReviewsRequest(page_size=100), []
    while not seen or request.page_token:
        page = await desk.ListReviews(request, None)
        assert 0 < page.ByteSize() < LARGEST_PAGE_BYTES + 1000
        seen += [review.id for review in page.reviews]
        request.page_token = page.next_page_token
    assert (len(asked), seen) == (MANY, asked)


async def test_a_page_of_large_case_files_fits_a_message() -> None:
    """EDG-3, DLQ-1: the same of what ended without a result, with the input that it had."""
    home = house()
    home.routing.script = {frame["id"]: [OUT_OF_ORDER] for frame in frames()}
    run = await home.carry(await home.produce(production(*frames(budget={"attempts": 1}))))
    desk, request, seen = DeadLetterServicer(home.people), ListDeadLettersRequest(run_id=run.id), []
    while not seen or request.page_token:
        page = await desk.ListDeadLetters(request, None)
        assert 0 < page.ByteSize() < LARGEST_PAGE_BYTES + 1000
        seen += [letter.node_id for letter in page.dead_letters]
        request.page_token = page.next_page_token
    assert sorted(seen) == [f"f{number}" for number in range(MANY)]


async def test_a_desk_does_not_begin_anew_at_a_token_that_is_none() -> None:
    """EDG-2: both desks say malformed_request of what no page gave."""
    home = house()
    for page in (home.people.reviews("", (), "", "garbage", 9), home.people.letters("", "", False, "garbage", 9)):
        with pytest.raises(Fault, match="page_token") as caught:
            await page
        assert caught.value.code == "malformed_request"

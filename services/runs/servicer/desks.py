"""Inbound for people's desks: decode, call the use-case, encode."""

from collections.abc import Callable
from typing import Any

from libs.rpc.paging import page_size, page_within
from pointsman.runs.v1 import dead_letter_service_pb2 as letters_pb
from pointsman.runs.v1 import review_pb2
from pointsman.runs.v1 import review_service_pb2 as reviews_pb
from pointsman.runs.v1.dead_letter_service_pb2_grpc import DeadLetterServiceServicer
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceServicer
from services.runs.app.review_desk import ReviewDesk
from services.runs.wire import desks as wire


class ReviewServicer(ReviewServiceServicer):
    """`pointsman.runs.v1.ReviewService`. `decided` is called after a decision, so that its work begins at once."""

    def __init__(self, desk: ReviewDesk, decided: Callable[[], None]) -> None:
        self._desk = desk
        self._decided = decided

    async def ListReviews(self, request: reviews_pb.ListReviewsRequest, context: Any) -> reviews_pb.ListReviewsResponse:
        """Reviews in the order in which they should be looked at."""
        states = wire.states_from_proto(request.states)

        async def look(token: str, most: int) -> tuple[list[review_pb2.Review], str]:
            page, following = await self._desk.reviews(request.tenant, states, request.run_id, token, most)
            return [wire.review_to_proto(review) for review in page], following

        told, following = await page_within(look, request.page_token, page_size(request.page_size))
        return reviews_pb.ListReviewsResponse(reviews=told, next_page_token=following)

    async def GetReview(self, request: reviews_pb.GetReviewRequest, context: Any) -> reviews_pb.GetReviewResponse:
        """One review."""
        review = await self._desk.review(request.tenant, request.review_id)
        return reviews_pb.GetReviewResponse(review=wire.review_to_proto(review))

    async def ClaimReview(self, request: reviews_pb.ClaimReviewRequest, context: Any) -> reviews_pb.ClaimReviewResponse:
        """Takes a review to look at, or hands it on."""
        review = await self._desk.claim(request.tenant, request.review_id, request.claimant)
        return reviews_pb.ClaimReviewResponse(review=wire.review_to_proto(review))

    async def Decide(self, request: reviews_pb.DecideRequest, context: Any) -> reviews_pb.DecideResponse:
        """Decides it, once."""
        verdict = wire.verdict_from_proto(request)
        review = await self._desk.decide(request.tenant, request.review_id, verdict, request.subject_hash)
        self._decided()
        return reviews_pb.DecideResponse(review=wire.review_to_proto(review))


class DeadLetterServicer(DeadLetterServiceServicer):
    """`pointsman.runs.v1.DeadLetterService`."""

    def __init__(self, desk: ReviewDesk) -> None:
        self._desk = desk

    async def ListDeadLetters(
        self, request: letters_pb.ListDeadLettersRequest, context: Any
    ) -> letters_pb.ListDeadLettersResponse:
        """Case files, newest first."""
        asked = (request.tenant, request.run_id, request.with_redriven)

        async def look(token: str, most: int) -> tuple[list[review_pb2.DeadLetter], str]:
            page, following = await self._desk.letters(*asked, token, most)
            return [wire.letter_to_proto(*case) for case in page], following

        told, following = await page_within(look, request.page_token, page_size(request.page_size))
        return letters_pb.ListDeadLettersResponse(dead_letters=told, next_page_token=following)

    async def GetDeadLetter(
        self, request: letters_pb.GetDeadLetterRequest, context: Any
    ) -> letters_pb.GetDeadLetterResponse:
        """One case file."""
        case = await self._desk.letter(request.tenant, request.dead_letter_id)
        return letters_pb.GetDeadLetterResponse(dead_letter=wire.letter_to_proto(*case))

"""People's desks over the stubs of runs."""

from collections.abc import Sequence
from typing import Any

from libs.rpc.faulting import faulting
from pointsman.runs.v1 import dead_letter_service_pb2, review_service_pb2
from pointsman.runs.v1.dead_letter_service_pb2_grpc import DeadLetterServiceStub
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceStub
from services.edge.domain import run_shapes
from services.edge.domain.decisions import Verdict
from services.edge.wire import desks as wire

TIMEOUT_S = 10.0


class DesksPeer:
    """Implements `ports.Desks`."""

    def __init__(self, channel: Any) -> None:
        self._reviews: Any = ReviewServiceStub(channel)
        self._letters: Any = DeadLetterServiceStub(channel)

    @faulting
    async def reviews(
        self, tenant: str, statuses: Sequence[str], run_id: str, size: int, token: str
    ) -> tuple[list[run_shapes.Review], str]:
        """See the port."""
        request = review_service_pb2.ListReviewsRequest(
            tenant=tenant, states=wire.states(list(statuses)), run_id=run_id, page_size=size, page_token=token
        )
        reply = await self._reviews.ListReviews(request, timeout=TIMEOUT_S)
        return [wire.review(item) for item in reply.reviews], reply.next_page_token

    @faulting
    async def review(self, review_id: str) -> run_shapes.Review:
        """See the port."""
        request = review_service_pb2.GetReviewRequest(review_id=review_id)
        return wire.review((await self._reviews.GetReview(request, timeout=TIMEOUT_S)).review)

    @faulting
    async def claim(self, review_id: str, who: str) -> run_shapes.Review:
        """See the port."""
        request = review_service_pb2.ClaimReviewRequest(review_id=review_id, claimant=who)
        return wire.review((await self._reviews.ClaimReview(request, timeout=TIMEOUT_S)).review)

    @faulting
    async def decide(self, review_id: str, who: str, verdict: Verdict) -> run_shapes.Review:
        """See the port."""
        request = wire.decision("", review_id, who, verdict)
        return wire.review((await self._reviews.Decide(request, timeout=TIMEOUT_S)).review)

    @faulting
    async def dead_letters(
        self, tenant: str, run_id: str, with_redriven: bool, size: int, token: str
    ) -> tuple[list[run_shapes.DeadLetter], str]:
        """See the port."""
        request = dead_letter_service_pb2.ListDeadLettersRequest(
            tenant=tenant, run_id=run_id, with_redriven=with_redriven, page_size=size, page_token=token
        )
        reply = await self._letters.ListDeadLetters(request, timeout=TIMEOUT_S)
        return [wire.dead_letter(item) for item in reply.dead_letters], reply.next_page_token

    @faulting
    async def dead_letter(self, letter_id: str) -> run_shapes.DeadLetter:
        """See the port."""
        request = dead_letter_service_pb2.GetDeadLetterRequest(dead_letter_id=letter_id)
        return wire.dead_letter((await self._letters.GetDeadLetter(request, timeout=TIMEOUT_S)).dead_letter)

"""Pointsman over gRPC, for those who have no HTTP between them and the server: Runs and people's desks, with the same
patience.

async with RpcClient("dns:///127.0.0.1:50051", key, tenant="studio") as pointsman:
    run = await pointsman.create_run("keyframe-image", {"prompt": "a market in the rain"})
    run = await pointsman.result_of(run.id)
"""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

import grpc

from libs.client import messages
from libs.client.faults import PointsmanError, Problem, RunUnsuccessful, Unreachable
from libs.client.http import ENDS, JOIN_S, JOINING, MARGIN_S, PAGE
from libs.client.retrying import Patience, Safety
from libs.client.sending import Means, Tries, patiently
from libs.client.shapes import Amount, DeadLetter, Event, Redriven, Review, Run, Steered
from libs.faults.fault import Fault
from libs.faults.registry import CODES
from libs.faults.wire import from_rpc_error
from libs.kernel.canonical import digest
from libs.rpc.address import parse
from libs.rpc.channel import open_channel
from libs.rpc.values import struct_from
from pointsman.runs.v1 import dead_letter_service_pb2, review_pb2, review_service_pb2
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.dead_letter_service_pb2_grpc import DeadLetterServiceStub
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceStub
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceStub

TIMEOUT_S = 15.0
STREAM_S = 3600.0
FOREIGN_STATUS = 500


class RpcClient:
    """One server, one key and its tenant. Use inside `async with`. Faults as `http.Client`.

    `channel` is opened by whoever gives it, and closed by them.
    """

    def __init__(
        self,
        target: str,
        key: str,
        *,
        tenant: str,
        patience: Patience | None = None,
        means: Means | None = None,
        new_key: Callable[[], str] = lambda: uuid.uuid4().hex,
        channel: Any = None,
    ) -> None:
        self._target = target
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._tenant = tenant
        self._patience = patience or Patience()
        self._means = means or Means()
        self._new_key = new_key
        self._given = channel
        self._channel: Any = None
        self._runs: Any = None
        self._reviews: Any = None
        self._letters: Any = None

    async def __aenter__(self) -> Self:
        self._channel = self._given or open_channel(parse(self._target))
        self._runs = RunsServiceStub(self._channel)
        self._reviews = ReviewServiceStub(self._channel)
        self._letters = DeadLetterServiceStub(self._channel)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._given is None and self._channel is not None:
            await self._channel.close()

    async def _sent(
        self, method: str, request: Any, timeout_s: float = TIMEOUT_S, final: Any = frozenset(), stub: Any = None
    ) -> Any:
        call = getattr(stub or self._runs, method)

        async def once() -> Any:
            try:
                return await call(request, timeout=timeout_s, metadata=self._metadata)
            except grpc.RpcError as error:
                raise fault_of(error) from error

        return await patiently(once, Safety.SAFE, self._patience, self._means, final=final)

    async def create_run(
        self,
        model: str,
        input: Mapping[str, Any],
        *,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str = "",
    ) -> Run:
        """A new Run, at work; one Run however often it has to be sent. Files go in as artifacts."""
        request = messages.creation(self._tenant, model, input, labels or {})
        request.idempotency_key = idempotency_key or self._new_key()
        request.fingerprint = digest({"model": model, "input": dict(input), "labels": dict(labels or {})})
        return messages.run((await self._sent("CreateRun", request)).run)

    async def create_production(
        self, document: Mapping[str, Any], *, labels: Mapping[str, str] | None = None, idempotency_key: str = ""
    ) -> Run:
        """A new Run of a whole production document; one Run however often it has to be sent."""
        request = pb.CreateRunRequest(tenant=self._tenant, production=struct_from(document), labels=labels or {})
        request.idempotency_key = idempotency_key or self._new_key()
        request.fingerprint = digest({"production": dict(document), "labels": dict(labels or {})})
        return messages.run((await self._sent("CreateRun", request)).run)

    async def get_run(self, run_id: str) -> Run:
        """The Run now."""
        return messages.run((await self._sent("GetRun", pb.GetRunRequest(run_id=run_id, tenant=self._tenant))).run)

    async def cancel_run(self, run_id: str, reason: str = "", *, who: str = "") -> Run:
        """Ask for its end, in the name of `who`."""
        request = pb.CancelRunRequest(run_id=run_id, tenant=self._tenant, reason=reason, actor=who)
        return messages.run((await self._sent("CancelRun", request)).run)

    async def pause_run(self, run_id: str, reason: str = "", *, who: str = "", idempotency_key: str = "") -> Run:
        """Hold it: nothing new is submitted from now on; what providers have is followed."""
        command = idempotency_key or self._new_key()
        request = pb.PauseRunRequest(run_id=run_id, tenant=self._tenant, reason=reason, request_id=command, actor=who)
        return messages.run((await self._sent("PauseRun", request)).run)

    async def resume_run(self, run_id: str, reason: str = "", *, who: str = "", idempotency_key: str = "") -> Run:
        """Let a paused Run go on."""
        command = idempotency_key or self._new_key()
        request = pb.ResumeRunRequest(run_id=run_id, tenant=self._tenant, reason=reason, request_id=command, actor=who)
        return messages.run((await self._sent("ResumeRun", request)).run)

    async def steer_run(self, run_id: str, kind: str, data: Mapping[str, Any], *, idempotency_key: str = "") -> Steered:
        """Give it an input of that kind: `text` in `data` is appended to the declared field, `value` replaces it."""
        request = pb.SteerRunRequest(run_id=run_id, tenant=self._tenant, kind=kind, data=struct_from(data))
        request.request_id = idempotency_key or self._new_key()
        reply = await self._sent("SteerRun", request)
        return Steered(reply.steering_event_id, reply.sequence, list(reply.node_ids), list(reply.declared_kinds))

    async def redrive_run(
        self,
        run_id: str,
        node: str = "",
        *,
        reason: str = "",
        input: Mapping[str, Any] | None = None,
        supply: str = "",
        who: str = "",
        idempotency_key: str = "",
    ) -> Run:
        """Run a node again, or without one every node that failed, with the fields of its input that change."""
        request = self._redrive(run_id, node, reason, input, supply)
        request.request_id, request.actor = idempotency_key or self._new_key(), who
        return messages.run((await self._sent("RedriveRun", request)).run)

    async def preview_redrive(
        self, run_id: str, node: str = "", *, input: Mapping[str, Any] | None = None, supply: str = ""
    ) -> Redriven:
        """What that redrive would reach and may cost; nothing runs."""
        request = self._redrive(run_id, node, "", input, supply)
        request.preview = True
        return messages.redriven(await self._sent("RedriveRun", request))

    def _redrive(
        self, run_id: str, node: str, reason: str, changes: Mapping[str, Any] | None, supply: str
    ) -> pb.RedriveRunRequest:
        return pb.RedriveRunRequest(
            run_id=run_id,
            tenant=self._tenant,
            node_id=node,
            reason=reason,
            input=struct_from(changes) if changes is not None else None,
            supply_id=supply,
        )

    async def reviews(self, *, run_id: str = "", tenant: str = "", statuses: Sequence[str] = ()) -> list[Review]:
        """Questions to people in the order in which they should be looked at; without `statuses`, those that wait."""
        states = [review_pb2.ReviewState.Value(f"REVIEW_STATE_{status.upper()}") for status in statuses]
        request = review_service_pb2.ListReviewsRequest(run_id=run_id, tenant=tenant, states=states, page_size=PAGE)
        pages = self._pages(self._reviews, "ListReviews", request)
        return [messages.review(item) async for page in pages for item in page.reviews]

    async def review(self, review_id: str) -> Review:
        """One review, whatever became of it."""
        request = review_service_pb2.GetReviewRequest(review_id=review_id)
        return messages.review((await self._sent("GetReview", request, stub=self._reviews)).review)

    async def claim_review(self, review_id: str, who: str) -> Review:
        """Take a review to look at, or hand it to somebody."""
        request = review_service_pb2.ClaimReviewRequest(review_id=review_id, claimant=who)
        return messages.review((await self._sent("ClaimReview", request, stub=self._reviews)).review)

    async def decide_review(
        self,
        review_id: str,
        decision: str,
        who: str,
        *,
        comment: str = "",
        input: Mapping[str, Any] | None = None,
        supply: str = "",
        budget: Amount | None = None,
        attempts: int = 0,
        review_minutes: int = 0,
        subject_hash: str = "",
    ) -> Review:
        """Decide it, once, in the name of `who`; the same decision of the same person again is the same.

        With raise_budget one of `budget`, `attempts`, `review_minutes` is the new hard limit.
        """
        request = review_service_pb2.DecideRequest(
            review_id=review_id,
            decision=review_pb2.Decision.Value(f"DECISION_{decision.upper()}"),
            decider=who,
            comment=comment,
            input=struct_from(input) if input else None,
            supply_id=supply,
            budget=messages.limit(budget),
            attempts=attempts,
            review_minutes=review_minutes,
            subject_hash=subject_hash,
        )
        return messages.review((await self._sent("Decide", request, stub=self._reviews)).review)

    async def dead_letters(
        self, *, run_id: str = "", tenant: str = "", with_redriven: bool = False
    ) -> list[DeadLetter]:
        """Case files of nodes that ended without a result, newest first."""
        request = dead_letter_service_pb2.ListDeadLettersRequest(
            run_id=run_id, tenant=tenant, with_redriven=with_redriven, page_size=PAGE
        )
        pages = self._pages(self._letters, "ListDeadLetters", request)
        return [messages.dead_letter(item) async for page in pages for item in page.dead_letters]

    async def dead_letter(self, letter_id: str) -> DeadLetter:
        """One case file."""
        request = dead_letter_service_pb2.GetDeadLetterRequest(dead_letter_id=letter_id)
        return messages.dead_letter((await self._sent("GetDeadLetter", request, stub=self._letters)).dead_letter)

    async def _pages(self, stub: Any, method: str, request: Any) -> AsyncIterator[Any]:
        while True:
            page = await self._sent(method, request, stub=stub)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def finished(self, run_id: str) -> Run:
        """The Run at rest, however it ended."""
        request = pb.JoinRunRequest(run_id=run_id, tenant=self._tenant)
        request.timeout.FromSeconds(JOIN_S)
        while True:
            try:
                reply = await self._sent("JoinRun", request, JOIN_S + MARGIN_S, JOINING)
            except Problem as problem:
                if problem.code not in JOINING:
                    raise
            else:
                return messages.run(reply.run)

    async def result_of(self, run_id: str) -> Run:
        """The Run with its result. RunUnsuccessful if it came to rest in any other state."""
        run = await self.finished(run_id)
        if run.status != "succeeded":
            raise RunUnsuccessful(run)
        return run

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Event]:
        """The events of a Run behind a sequence, each once and in order, until the Run rests."""
        tries = Tries(self._patience, self._means)
        while True:
            try:
                async with aclosing(self._stream(run_id, after)) as events:
                    async for event in events:
                        if event.sequence > after:
                            after = event.sequence
                            tries.progress()
                            yield event
                            if event.kind in ENDS:
                                return
                return  # the server ends a stream by itself only where nothing follows
            except PointsmanError as error:
                await tries.after(error, Safety.SAFE)

    async def _stream(self, run_id: str, after: int) -> AsyncGenerator[Event, None]:
        request = pb.StreamRunEventsRequest(run_id=run_id, tenant=self._tenant, after_sequence=after, follow=True)
        call = self._runs.StreamRunEvents(request, timeout=STREAM_S, metadata=self._metadata)
        try:
            async for reply in call:
                for item in reply.events:
                    yield messages.event(item)
        except grpc.RpcError as error:
            raise fault_of(error) from error
        finally:
            call.cancel()


def fault_of(error: grpc.RpcError) -> PointsmanError:
    """The fault in a failed call: what the server said, or that nobody did."""
    fault: Fault = from_rpc_error(error)
    if fault.metadata.get("transport_status") == "UNAVAILABLE":
        return Unreachable("the server cannot be reached")
    entry = CODES.get(fault.code)
    return Problem(
        status=entry.http_status if entry else FOREIGN_STATUS,
        code=fault.code,
        detail=fault.message,
        retryable=fault.retryable,
        category=fault.category.value,
        scope=fault.scope.value,
        retry_after_s=None if fault.retry_after_ms is None else fault.retry_after_ms / 1000,
        errors=tuple((item.pointer, item.reason) for item in fault.errors),
    )

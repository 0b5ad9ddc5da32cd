"""Runs as the edge sees it: real stubs, real wire, a scripted history."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.type.money_pb2 import Money

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.rpc.identity import current_identity
from pointsman.common.v1 import artifact_pb2
from pointsman.runs.v1 import (
    dead_letter_service_pb2,
    review_pb2,
    review_service_pb2,
    run_pb2,
    runs_service_pb2,
)
from pointsman.runs.v1.dead_letter_service_pb2_grpc import DeadLetterServiceServicer
from pointsman.runs.v1.review_service_pb2_grpc import ReviewServiceServicer
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceServicer
from tests.contract.edge.values import at, struct


class FakeRuns(RunsServiceServicer):
    """Runs by id, their events, and the keys that made them."""

    def __init__(self) -> None:
        self.runs: dict[str, run_pb2.Run] = {}
        self.events: dict[str, list[run_pb2.RunEvent]] = {}
        self.keys: dict[tuple[str, str], tuple[str, str]] = {}
        self.created: list[runs_service_pb2.CreateRunRequest] = []
        self.commanded: list[Any] = []
        """Requests to steer and to redrive."""
        self.actors: list[str] = []
        """Of requests to pause."""
        self.checked: list[runs_service_pb2.CreateRunRequest] = []
        self.identities: list[Any] = []
        self.streams = 0
        self.windows: list[int] = []
        self.earliest: dict[str, int] = {}
        """By Run: the sequence of the first event that is kept."""
        self.changed = asyncio.Condition()
        self.refusal: Fault | None = None
        self.open = asyncio.Event()
        """Orders are taken while it is set."""
        self.open.set()

    def add(self, run_id: str, tenant: str = "studio", **fields: Any) -> run_pb2.Run:
        """A Run with its first event."""
        state = fields.pop("state", run_pb2.RunState.RUN_STATE_PENDING)
        usage = run_pb2.RunUsage(cost=Money(currency_code=3 * "X"))
        node = run_pb2.Node(id="main", kind="generate", state=run_pb2.NodeState.NODE_STATE_PENDING)
        run = run_pb2.Run(
            id=run_id, tenant=tenant, state=state, model="clip", create_time=at(), usage=usage, nodes=[node], **fields
        )
        self.runs[run_id] = run
        self.events[run_id] = []
        self.tell(run_id, "run_created", model="clip")
        return run

    def tell(self, run_id: str, kind: str, **data: Any) -> None:
        """Commit an event."""
        events = self.events[run_id]
        number = len(events) + 1
        events.append(
            run_pb2.RunEvent(
                id=f"e{number}",
                run_id=run_id,
                sequence=number,
                kind=kind,
                data=struct(**data),
                create_time=at(number),
            )
        )
        self.runs[run_id].last_sequence = number

    async def announce(self) -> None:
        """Wake the streams."""
        async with self.changed:
            self.changed.notify_all()

    def succeed(self, run_id: str, sha256: str) -> None:
        """End it with one artifact."""
        run = self.runs[run_id]
        artifact = artifact_pb2.Artifact(sha256=sha256, media_type="video/mp4", size_bytes=12)
        run.state = run_pb2.RunState.RUN_STATE_SUCCEEDED
        run.finish_time.CopyFrom(at(9))
        run.nodes[0].state = run_pb2.NodeState.NODE_STATE_SUCCEEDED
        run.nodes[0].task_id = "task-1"
        run.nodes[0].artifacts.append(artifact)
        run.usage.cost.CopyFrom(Money(currency_code="CNY", units=6, nanos=500_000_000))
        run.usage.attempts = 1
        run.usage.supply_id = "ark-main/seedance"
        run.result.artifacts.append(artifact)
        run.result.degraded = True
        run.result.requested_profile, run.result.actual_profile = "933", "900"
        run.result.dropped_inputs.append("reference_videos")
        self.tell(run_id, "artifact_written", node="main", sha256=sha256, media_type="video/mp4", size_bytes=12)
        self.tell(run_id, "node_completed", node="main", artifacts=[sha256])
        self.tell(run_id, "run_completed", status="succeeded")

    def fail(self, run_id: str, fault: Fault) -> None:
        """End it without a result."""
        run = self.runs[run_id]
        run.state = run_pb2.RunState.RUN_STATE_FAILED
        run.failure.CopyFrom(failure_to_proto(fault))
        self.tell(run_id, "run_failed", status="failed")

    def _find(self, request: Any) -> run_pb2.Run:
        self.identities.append(current_identity())
        run = self.runs.get(request.run_id)
        if run is None or request.tenant not in ("", run.tenant):
            raise Fault.of("not_found", f"run {request.run_id!r} does not exist")
        return run

    async def FindRunByKey(self, request: Any, context: Any) -> Any:
        """By key."""
        run_id, fingerprint = self.keys.get((request.tenant, request.idempotency_key), ("", ""))
        if run_id and request.fingerprint not in (fingerprint, ""):
            raise Fault.of("idempotency_conflict", "another body")
        return runs_service_pb2.FindRunByKeyResponse(run=self.runs.get(run_id))

    async def CreateRun(self, request: Any, context: Any) -> Any:
        """Keeps the request; `refusal` is raised instead."""
        self.identities.append(current_identity())
        await self.open.wait()
        if self.refusal is not None:
            raise self.refusal
        if request.validate_only:
            self.checked.append(request)
            return runs_service_pb2.CreateRunResponse()
        self.created.append(request)
        run = self.add(f"{len(self.created):026d}", request.tenant, labels=dict(request.labels))
        if request.idempotency_key:
            self.keys[(request.tenant, request.idempotency_key)] = (run.id, request.fingerprint)
        return runs_service_pb2.CreateRunResponse(run=run)

    async def GetRun(self, request: Any, context: Any) -> Any:
        """By id."""
        return runs_service_pb2.GetRunResponse(run=self._find(request))

    async def ListRuns(self, request: Any, context: Any) -> Any:
        """All of a tenant that fit; the token is the last id."""
        if request.page_token == "bad":
            raise Fault.of("malformed_request", "page_token is none that a page gave")
        fits = [
            run
            for run_id, run in sorted(self.runs.items(), reverse=True)
            if request.tenant in ("", run.tenant)
            and (not request.states or run.state in request.states)
            and (not request.page_token or run_id < request.page_token)
            and (not request.label or request.label.partition("=")[0] in run.labels)
        ]
        page, rest = fits[: request.page_size], fits[request.page_size :]
        return runs_service_pb2.ListRunsResponse(runs=page, next_page_token=page[-1].id if rest else "")

    async def PauseRun(self, request: Any, context: Any) -> Any:
        """Paused."""
        run = self._find(request)
        self.actors.append(request.actor)
        run.state = run_pb2.RunState.RUN_STATE_PAUSED
        return runs_service_pb2.PauseRunResponse(run=run)

    async def ResumeRun(self, request: Any, context: Any) -> Any:
        """Running."""
        run = self._find(request)
        run.state = run_pb2.RunState.RUN_STATE_RUNNING
        return runs_service_pb2.ResumeRunResponse(run=run)

    async def SteerRun(self, request: Any, context: Any) -> Any:
        """Accepted."""
        self._find(request)
        self.commanded.append(request)
        return runs_service_pb2.SteerRunResponse(
            steering_event_id="steering-1", sequence=1, node_ids=["shots"], declared_kinds=["style", "mood"]
        )

    async def RedriveRun(self, request: Any, context: Any) -> Any:
        """Nothing is reached."""
        run = self._find(request)
        self.commanded.append(request)
        return runs_service_pb2.RedriveRunResponse(run=run)

    async def JoinRun(self, request: Any, context: Any) -> Any:
        """At once if at rest; else a timeout at once, as if the time had passed."""
        run = self._find(request)
        await self.open.wait()
        if run.state <= run_pb2.RunState.RUN_STATE_RUNNING:
            raise Fault.of("join_timeout", f"not at rest after {request.timeout.seconds} s")
        return runs_service_pb2.JoinRunResponse(run=run)

    async def CancelRun(self, request: Any, context: Any) -> Any:
        """Ends it."""
        run = self._find(request)
        if run.state > run_pb2.RunState.RUN_STATE_RUNNING:
            raise Fault.of("run_terminal", f"run {run.id} has ended")
        run.state = run_pb2.RunState.RUN_STATE_CANCELLED
        self.tell(run.id, "run_cancelled", reason=request.reason)
        return runs_service_pb2.CancelRunResponse(run=run)

    async def GetServiceLevels(self, request: Any, context: Any) -> Any:
        """Of everything and of one model, of which little is known."""
        self.windows.append(request.window.seconds)
        cost = Money(currency_code="CNY", units=1, nanos=250_000_000)
        levels = [
            runs_service_pb2.ServiceLevels(runs=4, nodes=3, success_rate=0.75, cost_per_usable_second=[cost]),
            runs_service_pb2.ServiceLevels(model="clip", nodes=1, first_pass_yield=0.0),
        ]
        return runs_service_pb2.GetServiceLevelsResponse(levels=levels, checked=2, rebuilt=2)

    async def StreamRunEvents(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Events after the cursor, one batch at a time, until the Run is at rest."""
        run = self._find(request)
        after = request.after_sequence
        if after > run.last_sequence:
            raise Fault.of("malformed_request", f"cursor {after} lies ahead")
        earliest = self.earliest.get(run.id, 1)
        if after + 1 < earliest:
            told = {"earliest": str(earliest)}
            raise Fault.of("history_pruned", f"events before {earliest} are pruned", metadata=told)
        events = self.events[run.id]
        if not request.follow:
            yield runs_service_pb2.StreamRunEventsResponse(events=events[after : after + request.page_size])
            return
        self.streams += 1
        try:
            while True:
                if len(events) > after:
                    yield runs_service_pb2.StreamRunEventsResponse(events=events[after:])
                    after = events[-1].sequence
                if run.state > run_pb2.RunState.RUN_STATE_RUNNING and len(events) == after:
                    return
                async with self.changed:
                    await self.changed.wait_for(lambda seen=after: len(events) > seen)
        finally:
            self.streams -= 1


class FakeReviews(ReviewServiceServicer):
    """A desk on which nothing lies but `q1`, which is decided as often as somebody wants."""

    def __init__(self) -> None:
        self.decided: list[review_service_pb2.DecideRequest] = []

    async def ListReviews(self, request: Any, context: Any) -> Any:
        """None."""
        return review_service_pb2.ListReviewsResponse()

    async def GetReview(self, request: Any, context: Any) -> Any:
        """There is none."""
        raise Fault.of("not_found", f"review {request.review_id!r} does not exist")

    async def ClaimReview(self, request: Any, context: Any) -> Any:
        """There is none."""
        raise Fault.of("not_found", f"review {request.review_id!r} does not exist")

    async def Decide(self, request: Any, context: Any) -> Any:
        """Of `q1` alone."""
        if request.review_id != "q1":
            raise Fault.of("not_found", f"review {request.review_id!r} does not exist")
        self.decided.append(request)
        return review_service_pb2.DecideResponse(review=review_pb2.Review(id="q1", state="REVIEW_STATE_DECIDED"))


class FakeDeadLetters(DeadLetterServiceServicer):
    """No dead letters."""

    async def ListDeadLetters(self, request: Any, context: Any) -> Any:
        """None."""
        return dead_letter_service_pb2.ListDeadLettersResponse()

    async def GetDeadLetter(self, request: Any, context: Any) -> Any:
        """There is none."""
        raise Fault.of("not_found", f"dead letter {request.dead_letter_id!r} does not exist")

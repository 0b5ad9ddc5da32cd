"""The other contexts as the edge sees them: real stubs, real wire, scripted answers.

Each fake keeps a few facts and what it was asked; it raises Fault as the real servicers do.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from libs.rpc.identity import current_identity
from pointsman.capacity.v1 import capacity_pb2, capacity_service_pb2
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceServicer
from pointsman.common.v1 import artifact_pb2, subject_pb2
from pointsman.health.v1 import health_pb2, health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceServicer
from pointsman.routing.v1 import alert_pb2, catalog_pb2, catalog_service_pb2, routing_service_pb2, task_pb2
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceServicer
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceServicer
from pointsman.runs.v1 import run_pb2, runs_service_pb2
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceServicer

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def at(seconds: float = 0) -> Timestamp:
    """A time after the start."""
    stamp = Timestamp()
    stamp.FromSeconds(int(START.timestamp() + seconds))
    return stamp


def struct(**values: Any) -> Struct:
    """A JSON object."""
    made = Struct()
    made.update(values)
    return made


class FakeRuns(RunsServiceServicer):
    """Runs by id, their events, and the keys that made them."""

    def __init__(self) -> None:
        self.runs: dict[str, run_pb2.Run] = {}
        self.events: dict[str, list[run_pb2.RunEvent]] = {}
        self.keys: dict[tuple[str, str], tuple[str, str]] = {}
        self.created: list[runs_service_pb2.CreateRunRequest] = []
        self.identities: list[Any] = []
        self.streams = 0
        self.changed = asyncio.Condition()
        self.refusal: Fault | None = None

    def add(self, run_id: str, tenant: str = "studio", **fields: Any) -> run_pb2.Run:
        """A Run with its first event."""
        state = fields.pop("state", run_pb2.RunState.RUN_STATE_PENDING)
        usage = run_pb2.RunUsage(cost=Money(currency_code="XXX"))
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
        if run is None or run.tenant != request.tenant:
            raise Fault.of("not_found", f"run {request.run_id!r} does not exist")
        return run

    async def FindRunByKey(self, request: Any, context: Any) -> Any:
        """By key."""
        run_id, fingerprint = self.keys.get((request.tenant, request.idempotency_key), ("", ""))
        if run_id and fingerprint != request.fingerprint:
            raise Fault.of("idempotency_conflict", "another body")
        return runs_service_pb2.FindRunByKeyResponse(run=self.runs.get(run_id))

    async def CreateRun(self, request: Any, context: Any) -> Any:
        """Keeps the request; `refusal` is raised instead."""
        self.identities.append(current_identity())
        if self.refusal is not None:
            raise self.refusal
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
            if run.tenant == request.tenant
            and (not request.states or run.state in request.states)
            and (not request.page_token or run_id < request.page_token)
            and (not request.label or request.label.partition("=")[0] in run.labels)
        ]
        page, rest = fits[: request.page_size], fits[request.page_size :]
        return runs_service_pb2.ListRunsResponse(runs=page, next_page_token=page[-1].id if rest else "")

    async def JoinRun(self, request: Any, context: Any) -> Any:
        """At once if at rest; else a timeout at once, as if the time had passed."""
        run = self._find(request)
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

    async def StreamRunEvents(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Events after the cursor, one batch at a time, until the Run is at rest."""
        run = self._find(request)
        after = request.after_sequence
        if after > run.last_sequence:
            raise Fault.of("malformed_request", f"cursor {after} lies ahead")
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


class FakeRouting(RoutingServiceServicer):
    """Tasks, selections, alerts."""

    def __init__(self) -> None:
        self.tasks: dict[str, task_pb2.Task] = {}
        self.alerts: list[alert_pb2.Alert] = []
        self.resolved: list[Any] = []

    def add(self, task_id: str, tenant: str = "studio", sha256: str = "") -> task_pb2.Task:
        """A Task with one Attempt that failed and one that is uncertain."""
        failed = task_pb2.Attempt(
            id="a1",
            number=1,
            supply_id="ark-main/seedance",
            channel_id="ark-main",
            state=task_pb2.AttemptState.ATTEMPT_STATE_FAILED,
            client_token="t1",
            failure=failure_to_proto(Fault.of("key_invalid", "401 from ark-main")),
            quote=Money(currency_code="CNY", units=6),
            submit_time=at(1),
            finish_time=at(2),
            task_id=task_id,
        )
        uncertain = task_pb2.Attempt(
            id="a2",
            number=2,
            supply_id="b/x",
            channel_id="b",
            state=task_pb2.AttemptState.ATTEMPT_STATE_SUBMISSION_UNCERTAIN,
            client_token="t2",
            quote=Money(currency_code="CNY", units=7),
            task_id=task_id,
            uncertain_deadline_time=at(1800),
        )
        result = task_pb2.TaskResult()
        if sha256:
            result.artifacts.append(artifact_pb2.Artifact(sha256=sha256, media_type="video/mp4", size_bytes=12))
        task = task_pb2.Task(
            id=task_id,
            run_id="r1",
            node_id="main",
            tenant=tenant,
            model="clip",
            state=task_pb2.TaskState.TASK_STATE_RUNNING,
            attempts=[failed, uncertain],
            selection_round_count=1,
            result=result,
        )
        self.tasks[task_id] = task
        return task

    def _find(self, request: Any) -> task_pb2.Task:
        task = self.tasks.get(request.task_id)
        if task is None or request.tenant not in ("", task.tenant):
            raise Fault.of("not_found", f"task {request.task_id!r} does not exist")
        return task

    async def GetTask(self, request: Any, context: Any) -> Any:
        """By id."""
        return routing_service_pb2.GetTaskResponse(task=self._find(request))

    async def ListSelections(self, request: Any, context: Any) -> Any:
        """One round for every Task."""
        self._find(request)
        chosen = task_pb2.CandidateFate(
            supply_id="b/x", tier="exact", fate="chosen", rank=1, health="healthy", success_rate=0.5, free_slots=3
        )
        dropped = task_pb2.CandidateFate(
            supply_id="c/y", tier="exact", fate="dropped", step="SEL-8", reason="circuit_open", figures="opened"
        )
        round_ = task_pb2.Selection(
            round=1,
            tier="exact",
            policy_id="stable",
            policy_revision=3,
            baseline=Money(currency_code="CNY", units=6),
            spent=Money(currency_code="CNY"),
            candidates=[chosen, dropped],
            chosen_supply_id="b/x",
            steps=["1 capability", "2 health", "3 policy", "4 one switch"],
        )
        return routing_service_pb2.ListSelectionsResponse(selections=[round_])

    async def ListTasks(self, request: Any, context: Any) -> Any:
        """All of them."""
        assert request.with_uncertain_attempts
        return routing_service_pb2.ListTasksResponse(tasks=list(self.tasks.values()))

    async def ListAlerts(self, request: Any, context: Any) -> Any:
        """Those of a kind."""
        fits = [alert for alert in self.alerts if request.kind in ("", alert.kind)]
        return routing_service_pb2.ListAlertsResponse(alerts=fits)

    async def ResolveAttempt(self, request: Any, context: Any) -> Any:
        """Keeps the request."""
        self.resolved.append(request)
        for task in self.tasks.values():
            if any(attempt.id == request.attempt_id for attempt in task.attempts):
                return routing_service_pb2.ResolveAttemptResponse(task=task)
        raise Fault.of("not_found", "no such attempt")


class FakeCatalog(CatalogServiceServicer):
    """The catalogue."""

    def __init__(self) -> None:
        self.applied: list[catalog_service_pb2.ApplyRequest] = []
        self.admin: list[catalog_service_pb2.SetAdminStateRequest] = []
        self.models: dict[str, list[str]] = {}
        self.reasons: list[str] = []
        self.refusal: Fault | None = None

    async def ListModels(self, request: Any, context: Any) -> Any:
        """What a tenant may use."""
        models = [
            catalog_pb2.PublicModel(
                id=name,
                kind="video",
                profile="933",
                limits=struct(duration_s={"min": 4, "max": 15}),
                price_range=[struct(currency="CNY", low="4.00", high="37.50", per="request")],
                degradations=[struct(to_profile="900", drops=["reference_videos"], discloses="less")],
                create_time=at(),
            )
            for name in self.models.get(request.tenant, ["clip"])
        ]
        return catalog_service_pb2.ListModelsResponse(models=models)

    async def Apply(self, request: Any, context: Any) -> Any:
        """Keeps the request; `refusal` is raised instead."""
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(request)
        return catalog_service_pb2.ApplyResponse(
            revision=7,
            changes=[catalog_pb2.CatalogChange(kind=6, id="clip", change="created", details=["+"])],
            publications=[catalog_pb2.Publication(model_id="clip", published=False, reasons=["no price rule"])],
        )

    async def Diff(self, request: Any, context: Any) -> Any:
        """One change."""
        return catalog_service_pb2.DiffResponse(changes=[catalog_pb2.CatalogChange(kind=2, id="a/b", change="retired")])

    async def List(self, request: Any, context: Any) -> Any:
        """Two pages of one object."""
        second = bool(request.page_token)
        one = catalog_pb2.CatalogObject(kind=1, id="b" if second else "a", revision=1, spec=struct(admin="enabled"))
        return catalog_service_pb2.ListResponse(objects=[one], next_page_token="" if second else "x", revision=7)

    async def Publish(self, request: Any, context: Any) -> Any:
        """As `reasons` say."""
        standing = catalog_pb2.Publication(model_id=request.model_id, published=not self.reasons, reasons=self.reasons)
        return catalog_service_pb2.PublishResponse(publication=standing)

    async def SetAdminState(self, request: Any, context: Any) -> Any:
        """Keeps the request."""
        if request.subject.id == "gone":
            raise Fault.of("not_found", "no supply 'gone'")
        self.admin.append(request)
        one = catalog_pb2.CatalogObject(kind=2, id=request.subject.id, revision=2, spec=struct(admin="disabled"))
        return catalog_service_pb2.SetAdminStateResponse(object=one)


class FakeHealth(HealthServiceServicer):
    """One Channel and one Supply."""

    def __init__(self) -> None:
        self.fault: Fault | None = None

    async def GetSnapshot(self, request: Any, context: Any) -> Any:
        """Both, or the fault."""
        if self.fault is not None:
            raise self.fault
        channel = health_pb2.SubjectHealth(
            subject=subject_pb2.Subject(kind=2, id="ark-main"), state=1, epoch=1, since_time=at(), reason="declared"
        )
        supply = health_pb2.SubjectHealth(
            subject=subject_pb2.Subject(kind=3, id="ark-main/seedance"),
            state=5,
            epoch=2,
            recovery_successes=2,
            effective_concurrency=2,
            since_time=at(),
            cooldown_until_time=at(60),
            success_rate=0.9,
            success_rate_low=0.7,
            success_rate_high=0.97,
            samples=20,
            reason="recovering",
        )
        return health_service_pb2.GetSnapshotResponse(subjects=[channel, supply], snapshot_time=at())


class FakeCapacity(CapacityServiceServicer):
    """One gated Supply and one Channel without a gate."""

    async def GetCapacity(self, request: Any, context: Any) -> Any:
        """Both, and a lease."""
        channel = capacity_pb2.SubjectCapacity(subject=subject_pb2.Subject(kind=2, id="ark-main"), in_use=1)
        supply = capacity_pb2.SubjectCapacity(
            subject=subject_pb2.Subject(kind=3, id="ark-main/seedance"),
            configured=5,
            effective=2,
            in_use=1,
            requests_used=4,
        )
        lease = capacity_pb2.Lease(
            id="l1",
            holder="routing-1",
            kind="video",
            channel_id="ark-main",
            supply_id="ark-main/seedance",
            expire_time=at(60),
        )
        return capacity_service_pb2.GetCapacityResponse(subjects=[channel, supply], leases=[lease])

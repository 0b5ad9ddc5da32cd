"""Routing, its catalogue, health and capacity as the edge sees them: real stubs, real wire, scripted answers."""

from typing import Any

from google.type.money_pb2 import Money

from libs.faults.failures import failure_to_proto
from libs.faults.fault import Fault
from pointsman.capacity.v1 import capacity_pb2, capacity_service_pb2
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceServicer
from pointsman.common.v1 import artifact_pb2, subject_pb2
from pointsman.health.v1 import health_pb2, health_service_pb2
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceServicer
from pointsman.routing.v1 import (
    alert_pb2,
    catalog_pb2,
    catalog_service_pb2,
    refusal_pb2,
    replay_pb2,
    restore_pb2,
    routing_service_pb2,
    task_pb2,
    verification_pb2,
)
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceServicer
from tests.contract.edge.fake_calls import FakeCalls
from tests.contract.edge.values import at, struct


class FakeRouting(FakeCalls):
    """Tasks, selections, alerts, and synchronous calls."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, task_pb2.Task] = {}
        self.alerts: list[alert_pb2.Alert] = []
        self.submitted: list[routing_service_pb2.SubmitTaskRequest] = []
        self.resolved: list[Any] = []
        self.restored: list[Any] = []
        self.supposed: list[Any] = []

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

    async def SubmitTask(self, request: Any, context: Any) -> Any:
        """Taken."""
        self.submitted.append(request)
        return routing_service_pb2.SubmitTaskResponse(task=task_pb2.Task(id=request.request_id))

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

    async def ReplaySelection(self, request: Any, context: Any) -> Any:
        """One round that is the same, and one that is another choice."""
        if request.call_id:
            self.call_of(request)
        else:
            self._find(request)
        same = replay_pb2.ReplayedRound(round=1, identical=True, decision_digest="0" * 64, decide_time=at())
        difference = replay_pb2.ReplayDifference(pointer="/chosen", recorded='"b/x"', replayed="")
        other = replay_pb2.ReplayedRound(round=2, difference=difference, decision_digest="1" * 64, decide_time=at(1))
        return routing_service_pb2.ReplaySelectionResponse(rounds=[same, other])

    async def WhatIf(self, request: Any, context: Any) -> Any:
        """One decision that moves, on the first of two pages; keeps the request."""
        self.supposed.append(request)
        dear, cheap = Money(currency_code="CNY", units=6), Money(currency_code="CNY", units=5)
        before = replay_pb2.DecisionTotals(chosen_count=1, expected_costs=[dear], expected_successes=0.95)
        after = replay_pb2.DecisionTotals(chosen_count=1, expected_costs=[cheap], expected_successes=0.8)
        moved = {"model": "clip", "from_choice": "b/x", "to_choice": "c/y"}
        report = replay_pb2.WhatIfReport(
            decided_count=1, changed_count=1, before=before, after=after, shared_before=before, shared_after=after,
            moves=[replay_pb2.ChoiceMove(count=1, **moved)],
            examples=[
                replay_pb2.WhatIfExample(
                    task_id="t1", round=1, quote_before=dear, quote_after=cheap, reason="cheaper", **moved
                )
            ],
        )  # fmt: skip
        first = not request.page_token
        token, count = ("next", 2) if first else ("", 0)
        return routing_service_pb2.WhatIfResponse(report=report, next_page_token=token, round_count=count)

    async def ListTasks(self, request: Any, context: Any) -> Any:
        """All of them."""
        assert request.with_uncertain_attempts
        return routing_service_pb2.ListTasksResponse(tasks=list(self.tasks.values()))

    async def ListAlerts(self, request: Any, context: Any) -> Any:
        """Those of a kind."""
        fits = [alert for alert in self.alerts if request.kind in ("", alert.kind)]
        fits = [alert for alert in fits if not (request.open_only and alert.HasField("acknowledge_time"))]
        return routing_service_pb2.ListAlertsResponse(alerts=fits)

    async def AcknowledgeAlert(self, request: Any, context: Any) -> Any:
        """By id."""
        for alert in self.alerts:
            if alert.id == request.alert_id:
                alert.acknowledge_time.CopyFrom(at(9))
                return routing_service_pb2.AcknowledgeAlertResponse(alert=alert)
        raise Fault.of("not_found", "no such alert")

    async def ExplainTask(self, request: Any, context: Any) -> Any:
        """A refusal whose cause is known, and one without."""
        self._find(routing_service_pb2.GetTaskRequest(task_id=request.task_id))
        channel, supply = subject_pb2.Subject(kind=2, id="a"), subject_pb2.Subject(kind=3, id="b/x")
        cause = refusal_pb2.HealthCause(
            sequence=4, kind="opened", reason="key_invalid", attempt_id="a9", observe_time=at(1),
            cooldown_until_time=at(301),
        )  # fmt: skip
        known = refusal_pb2.HealthRefusal(
            round=1, supply_id="a/x", subject=channel, state="circuit_open", revision=7, decide_time=at(2), cause=cause
        )
        bare = refusal_pb2.HealthRefusal(round=1, supply_id="b/x", subject=supply, state="probing", decide_time=at(2))
        return routing_service_pb2.ExplainTaskResponse(steps=["1"], story=["It was."], refusals=[known, bare])

    async def DeclareRestored(self, request: Any, context: Any) -> Any:
        """Keeps the request; three Tasks are in doubt."""
        self.restored.append(request)
        known = restore_pb2.Restore(backup_time=at(), notice_time=at(9))
        return restore_pb2.DeclareRestoredResponse(restores=[known], task_count=3)

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
        self.verified: list[catalog_service_pb2.VerifySupplyRequest] = []
        self.models: dict[str, list[str]] = {}
        self.kinds: dict[str, str] = {}
        self.quotas: dict[str, dict[str, int]] = {}
        self.tenants_asked = 0
        self.reasons: list[str] = []
        self.refusal: Fault | None = None

    async def ListModels(self, request: Any, context: Any) -> Any:
        """What a tenant may use."""
        models = [
            catalog_pb2.PublicModel(
                id=name,
                kind=self.kinds.get(name, "video"),
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
        """Two pages of one object; of tenants, those with quotas."""
        if request.kind == catalog_pb2.CATALOG_KIND_TENANT:
            self.tenants_asked += 1
            if self.refusal is not None:
                raise self.refusal
            return catalog_service_pb2.ListResponse(
                objects=[
                    catalog_pb2.CatalogObject(kind=request.kind, id=tenant, revision=1, spec=struct(quotas=quotas))
                    for tenant, quotas in self.quotas.items()
                ]
            )
        second = bool(request.page_token)
        one = catalog_pb2.CatalogObject(kind=1, id="b" if second else "a", revision=1, spec=struct(admin="enabled"))
        return catalog_service_pb2.ListResponse(objects=[one], next_page_token="" if second else "x", revision=7)

    async def Publish(self, request: Any, context: Any) -> Any:
        """As `reasons` say."""
        standing = catalog_pb2.Publication(model_id=request.model_id, published=not self.reasons, reasons=self.reasons)
        return catalog_service_pb2.PublishResponse(publication=standing)

    async def VerifySupply(self, request: Any, context: Any) -> Any:
        """Keeps the request; the verification has failed."""
        if request.supply_id == "gone":
            raise Fault.of("not_found", "no supply 'gone'")
        self.verified.append(request)
        failed = verification_pb2.VERIFICATION_STATE_FAILED
        cost = Money(currency_code="CNY", units=4)
        case = verification_pb2.VerificationCase(name="words", task_id="t", state=failed, reasons=["late"], cost=cost)
        told = verification_pb2.Verification(
            id=request.request_id, supply_id=request.supply_id, upstream_model="m", capability_version=2, state=failed,
            cases=[case], cost=cost, start_time=at(), finish_time=at(),
        )  # fmt: skip
        return catalog_service_pb2.VerifySupplyResponse(verification=told)

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
        self.fault: Exception | None = None
        self.asked: list[Any] = []
        self.disabled = False

    async def GetSnapshot(self, request: Any, context: Any) -> Any:
        """Both, or the fault."""
        if self.fault is not None:
            raise self.fault
        channel = health_pb2.SubjectHealth(
            subject=subject_pb2.Subject(kind=2, id="ark-main"), state=1, epoch=1, since_time=at(), reason="declared"
        )
        supply = health_pb2.SubjectHealth(
            subject=subject_pb2.Subject(kind=3, id="ark-main/seedance"),
            state=6 if self.disabled else 5,
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

    async def SetState(self, request: Any, context: Any) -> Any:
        """The wish; keeps the request."""
        if request.subject.id == "gone":
            raise Fault.of("not_found", "gone does not exist")
        self.asked.append(request)
        told = health_pb2.SubjectHealth(
            subject=request.subject, state=request.state, epoch=3, since_time=at(2), reason=request.reason
        )
        return health_service_pb2.SetStateResponse(subject=told)

    async def ExplainState(self, request: Any, context: Any) -> Any:
        """An open circuit for every Supply; keeps the request."""
        if request.subject.kind != 3:
            raise Fault.of("not_found", "was not declared at that moment")
        self.asked.append(request)
        cause = health_pb2.HealthEvent(
            sequence=2, subject=request.subject, kind="opened", from_state=1, to_state=3, epoch=2,
            reason="model_unavailable", attempt_id="a7", observe_time=at(1),
        )  # fmt: skip
        past = health_pb2.PastHealth(
            subject=request.subject, state=3, epoch=2, revision=2, since_time=at(1), cooldown_until_time=at(61),
            reason="model_unavailable",
        )  # fmt: skip
        return health_service_pb2.ExplainStateResponse(health=past, cause=cause, events=[cause])


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
            adaptive=3,
            frozen_until_time=at(60),
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

"""Routing over its stub: Tasks, Attempts, alerts."""

from datetime import datetime
from typing import Any

from libs.rpc.faulting import faulting
from libs.rpc.values import time_to_proto
from pointsman.routing.v1 import restore_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from services.edge.domain import alert_shapes, past_shapes, replay_shapes, restore_shapes, shapes
from services.edge.ports import Alternative
from services.edge.wire import pasts
from services.edge.wire import replays as wire_replays
from services.edge.wire import tasks as wire_tasks

TIMEOUT_S = 10.0
WHAT_IF_TIMEOUT_S = 60.0
"""A page is up to a thousand decisions."""


class RoutingPeer:
    """Implements `ports.Routing` and `ports.restoring.Restoring`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def task(self, tenant: str, task_id: str) -> tuple[shapes.Task, frozenset[str]]:
        """See the port."""
        reply = await self._stub.GetTask(pb.GetTaskRequest(task_id=task_id, tenant=tenant), timeout=TIMEOUT_S)
        late = [item for attempt in reply.task.attempts for item in attempt.late.artifacts]
        digests = frozenset(item.sha256 for item in (*reply.task.result.artifacts, *late))
        return wire_tasks.task(reply.task), digests

    @faulting
    async def selections(self, tenant: str, task_id: str) -> list[shapes.Selection]:
        """See the port."""
        request = pb.ListSelectionsRequest(task_id=task_id, tenant=tenant)
        reply = await self._stub.ListSelections(request, timeout=TIMEOUT_S)
        return [wire_tasks.selection(item) for item in reply.selections]

    @faulting
    async def replay(self, tenant: str, task_id: str) -> replay_shapes.Replay:
        """See the port."""
        request = pb.ReplaySelectionRequest(task_id=task_id, tenant=tenant)
        return wire_replays.replay(task_id, await self._stub.ReplaySelection(request, timeout=TIMEOUT_S))

    @faulting
    async def what_if(
        self, alternative: Alternative, since: datetime, model: str, size: int, token: str
    ) -> replay_shapes.WhatIf:
        """See the port."""
        under: dict[str, Any] = {f"{alternative.kind}_yaml": alternative.text}
        request = pb.WhatIfRequest(
            **under,
            since_time=time_to_proto(since),
            model=model,
            page_size=size,
            page_token=token,
        )
        return wire_replays.what_if(await self._stub.WhatIf(request, timeout=WHAT_IF_TIMEOUT_S), not token)

    @faulting
    async def uncertain(self, size: int, token: str) -> tuple[list[shapes.UncertainAttempt], str]:
        """See the port."""
        request = pb.ListTasksRequest(with_uncertain_attempts=True, page_size=size, page_token=token)
        reply = await self._stub.ListTasks(request, timeout=TIMEOUT_S)
        return list(wire_tasks.uncertain_attempts(reply.tasks)), reply.next_page_token

    @faulting
    async def alerts(
        self, kind: str, subject: str, open_only: bool, size: int, token: str
    ) -> tuple[list[alert_shapes.Alert], str]:
        """See the port."""
        request = pb.ListAlertsRequest(
            kind=kind, subject=subject, open_only=open_only, page_size=size, page_token=token
        )
        reply = await self._stub.ListAlerts(request, timeout=TIMEOUT_S)
        return [wire_tasks.alert(item) for item in reply.alerts], reply.next_page_token

    @faulting
    async def acknowledge(self, alert_id: str) -> alert_shapes.Alert:
        """See the port."""
        request = pb.AcknowledgeAlertRequest(alert_id=alert_id)
        return wire_tasks.alert((await self._stub.AcknowledgeAlert(request, timeout=TIMEOUT_S)).alert)

    @faulting
    async def explanation(self, task_id: str) -> past_shapes.Explanation:
        """See the port."""
        reply = await self._stub.ExplainTask(pb.ExplainTaskRequest(task_id=task_id), timeout=TIMEOUT_S)
        return pasts.explanation(task_id, reply)

    @faulting
    async def resolve(self, attempt_id: str, resolution: str, provider_task_id: str, comment: str) -> shapes.Task:
        """See the port."""
        request = pb.ResolveAttemptRequest(
            attempt_id=attempt_id, resolution=resolution, provider_task_id=provider_task_id, comment=comment
        )
        reply = await self._stub.ResolveAttempt(request, timeout=TIMEOUT_S)
        return wire_tasks.task(reply.task)

    @faulting
    async def restored(self, backup_at: datetime | None, over: bool) -> restore_shapes.Restores:
        """See the port `Restoring`."""
        request = restore_pb2.DeclareRestoredRequest(backup_time=time_to_proto(backup_at), over=over)
        reply = await self._stub.DeclareRestored(request, timeout=TIMEOUT_S)
        return wire_tasks.restores(reply)

    @faulting
    async def ping(self) -> None:
        """See the port."""
        await self._stub.ListAlerts(pb.ListAlertsRequest(page_size=1), timeout=TIMEOUT_S)

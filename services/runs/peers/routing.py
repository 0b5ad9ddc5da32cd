"""Routing over its stub."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from libs.rpc.faulting import faulting
from libs.rpc.values import stamp_of
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceStub
from pointsman.routing.v1.tenant_budget_pb2 import TenantBudgetRequest
from services.runs.domain.money import order_of
from services.runs.domain.plan import Plan
from services.runs.domain.run import Node, Order, Run
from services.runs.domain.task_view import Estimate, Quota, TaskView
from services.runs.domain.urgency import urgency
from services.runs.wire import runs as wire

TIMEOUT_S = 10.0
TASKS_AT_ONCE = 1_000
REASON_TIMEOUT_S = 2.0
"""Who reads a Run waits no longer for a fresher word."""


class RoutingPeer:
    """Implements `ports.Routing`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = RoutingServiceStub(channel)

    @faulting
    async def validate(self, tenant: str, order: Order, supply: str = "", run_id: str = "") -> Estimate:
        """See the port."""
        request = wire.submission(tenant, order, supply=supply)
        request.validate_only = True
        request.run_id = run_id
        reply = await self._stub.SubmitTask(request, timeout=TIMEOUT_S)
        return wire.estimate_from_proto(reply.estimate)

    @faulting
    async def quota(self, tenant: str, at: datetime) -> Quota | None:
        """See the port."""
        request = TenantBudgetRequest(tenant=tenant, origin_time=stamp_of(at))
        reply = await self._stub.TenantBudget(request, timeout=TIMEOUT_S)
        return Quota(reply.budget_id, reply.currency) if reply.budget_id else None

    @faulting
    async def submit(self, plan: Plan, run: Run, node: Node) -> None:
        """See the port."""
        await self._stub.SubmitTask(_handed_over(plan, run, node), timeout=TIMEOUT_S)

    @faulting
    async def withdraw(self, plan: Plan, run: Run, node: Node) -> None:
        """See the port."""
        request = _handed_over(plan, run, node)
        request.cancel_requested = True
        await self._stub.SubmitTask(request, timeout=TIMEOUT_S)

    @faulting
    async def tasks(self, task_ids: Sequence[str]) -> Mapping[str, TaskView]:
        """See the port."""
        found: dict[str, TaskView] = {}
        for start in range(0, len(task_ids), TASKS_AT_ONCE):
            some = task_ids[start : start + TASKS_AT_ONCE]
            request = pb.ListTasksRequest(task_ids=some, page_size=len(some))
            reply = await self._stub.ListTasks(request, timeout=TIMEOUT_S)
            found.update((task.id, wire.task_from_proto(task)) for task in reply.tasks)
        return found

    @faulting
    async def waiting_reason(self, task_id: str) -> str:
        """See the port."""
        reply = await self._stub.GetTask(pb.GetTaskRequest(task_id=task_id), timeout=REASON_TIMEOUT_S)
        return str(reply.task.waiting_reason)

    @faulting
    async def cancel(self, task_id: str) -> None:
        """See the port."""
        request = pb.CancelTaskRequest(task_id=task_id, reason="the run was cancelled")
        await self._stub.CancelTask(request, timeout=TIMEOUT_S)

    @faulting
    async def pause(self, task_ids: Sequence[str], paused: bool) -> None:
        """See the port."""
        for start in range(0, len(task_ids), TASKS_AT_ONCE):
            request = pb.PauseTasksRequest(task_ids=task_ids[start : start + TASKS_AT_ONCE], paused=paused)
            await self._stub.PauseTasks(request, timeout=TIMEOUT_S)


def _handed_over(plan: Plan, run: Run, node: Node) -> pb.SubmitTaskRequest:
    hold = node.hold
    request = wire.submission(
        run.tenant,
        order_of(plan, run, node),
        supply=node.supply,
        attempts=hold.attempts if hold is not None and not plan.single else 0,
        hold=hold.id if hold is not None else "",
    )
    urgent = urgency(plan, node)
    request.options.stage = urgent.stage
    request.options.blocking = urgent.blocking
    request.options.blocks_release = urgent.blocks_release
    request.request_id = node.task_id
    request.run_id = run.id
    request.origin_time.CopyFrom(stamp_of(run.created_at))
    request.node_id = node.id
    return request

"""`RoutingService`."""

from collections.abc import AsyncIterator
from typing import Any

from pointsman.routing.v1 import restore_pb2, tenant_budget_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceServicer
from services.routing.app.acknowledge_alert import acknowledge_alert
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.calls.replay_call import replay_call
from services.routing.app.cancel_task import cancel_task
from services.routing.app.desk import Desk
from services.routing.app.explain_task import explain_task
from services.routing.app.pause_tasks import pause_tasks
from services.routing.app.present_reason import with_present_reason
from services.routing.app.raise_alert import raise_alert
from services.routing.app.read_tasks import get_task, list_rounds, watch_task
from services.routing.app.replay_selection import replay_selection
from services.routing.app.resolve_attempt import Resolution, resolve_attempt
from services.routing.app.restores import declare_over, declare_restored
from services.routing.app.submit_task import check_task, submit_task
from services.routing.app.what_if import what_if
from services.routing.servicer.calls import CallServicer
from services.routing.wire import alerts, restores
from services.routing.wire import replay as wire_replay
from services.routing.wire import task as wire
from services.routing.wire.refusals import explanation_to_proto


class RoutingServicer(CallServicer, RoutingServiceServicer):
    """`pointsman.routing.v1.RoutingService`."""

    def __init__(self, desk: Desk, calls: CallDesk) -> None:
        CallServicer.__init__(self, calls)
        self._desk = desk

    async def SubmitTask(self, request: pb.SubmitTaskRequest, context: Any) -> pb.SubmitTaskResponse:
        """Takes a Task into care, or only checks it."""
        submission = wire.submission_from_proto(request)
        if request.validate_only:
            return pb.SubmitTaskResponse(estimate=wire.estimate_to_proto(await check_task(self._desk, submission)))
        return pb.SubmitTaskResponse(task=wire.task_to_proto(await submit_task(self._desk, submission)))

    async def GetTask(self, request: pb.GetTaskRequest, context: Any) -> pb.GetTaskResponse:
        """One Task."""
        task = await get_task(self._desk, request.task_id, request.tenant)
        return pb.GetTaskResponse(task=wire.task_to_proto(await with_present_reason(self._desk, task)))

    async def ListTasks(self, request: pb.ListTasksRequest, context: Any) -> pb.ListTasksResponse:
        """Several Tasks."""
        tasks, token = await self._desk.store.find(wire.query_from_proto(request))
        return pb.ListTasksResponse(tasks=[wire.task_to_proto(task) for task in tasks], next_page_token=token)

    async def CancelTask(self, request: pb.CancelTaskRequest, context: Any) -> pb.CancelTaskResponse:
        """Asks for a Task to end."""
        task = await cancel_task(self._desk, request.task_id, request.reason)
        return pb.CancelTaskResponse(task=wire.task_to_proto(task))

    async def PauseTasks(self, request: pb.PauseTasksRequest, context: Any) -> pb.PauseTasksResponse:
        """Holds Tasks from new Attempts, or lets them go on."""
        await pause_tasks(self._desk, wire.task_ids_from_proto(request), paused=request.paused)
        return pb.PauseTasksResponse()

    async def WatchTask(self, request: pb.WatchTaskRequest, context: Any) -> AsyncIterator[pb.WatchTaskResponse]:
        """The Task now and after every change, until it ends."""
        async for task in watch_task(self._desk, request.task_id):
            yield pb.WatchTaskResponse(task=wire.task_to_proto(task))

    async def ListSelections(self, request: pb.ListSelectionsRequest, context: Any) -> pb.ListSelectionsResponse:
        """Every selection round of a Task."""
        rounds = await list_rounds(self._desk, request.task_id, request.tenant)
        return pb.ListSelectionsResponse(selections=[wire.selection_to_proto(item) for item in rounds])

    async def ExplainTask(self, request: pb.ExplainTaskRequest, context: Any) -> pb.ExplainTaskResponse:
        """Why it went where it went."""
        return explanation_to_proto(await explain_task(self._desk, request.task_id))

    async def ReplaySelection(self, request: pb.ReplaySelectionRequest, context: Any) -> pb.ReplaySelectionResponse:
        """Decides saved rounds again and compares byte for byte."""
        wire_replay.check_subject(request)
        if request.call_id:
            replays = await replay_call(self._calls, request.call_id, request.round, request.tenant)
        else:
            replays = await replay_selection(self._desk, request.task_id, request.round, request.tenant)
        return pb.ReplaySelectionResponse(rounds=[wire_replay.replay_to_proto(*item) for item in replays])

    async def WhatIf(self, request: pb.WhatIfRequest, context: Any) -> pb.WhatIfResponse:
        """Decides a page of history again under an alternative."""
        alternative = wire_replay.alternative_from_proto(request)
        query = wire_replay.rounds_from_proto(request, self._desk.now())
        return wire_replay.page_to_proto(await what_if(self._desk, alternative, query), query)

    async def ResolveAttempt(self, request: pb.ResolveAttemptRequest, context: Any) -> pb.ResolveAttemptResponse:
        """An operator's word on an uncertain submission."""
        word = Resolution(request.attempt_id, request.resolution, request.provider_task_id, request.comment)
        return pb.ResolveAttemptResponse(task=wire.task_to_proto(await resolve_attempt(self._desk, word)))

    async def DeclareRestored(
        self, request: restore_pb2.DeclareRestoredRequest, context: Any
    ) -> restore_pb2.DeclareRestoredResponse:
        """The database was put back, or nothing of that needs to be looked up any more."""
        backup_at, over = restores.told_from_proto(request)
        if over or backup_at is None:
            count = await declare_over(self._desk, backup_at)
        else:
            count = await declare_restored(self._desk, backup_at)
        return restores.answer_to_proto(self._desk.restores, count)

    async def TenantBudget(
        self, request: tenant_budget_pb2.TenantBudgetRequest, context: Any
    ) -> tenant_budget_pb2.TenantBudgetResponse:
        """The budget that limits what a tenant may spend."""
        tenant, came_at = wire.tenant_and_time_from_proto(request)
        purse = await self._desk.funds.quota_for(await self._desk.catalog.current(), tenant, came_at)
        if purse is None:
            return tenant_budget_pb2.TenantBudgetResponse()
        return tenant_budget_pb2.TenantBudgetResponse(budget_id=purse.id, currency=purse.currency)

    async def ListAlerts(self, request: pb.ListAlertsRequest, context: Any) -> pb.ListAlertsResponse:
        """Alerts, the worst consequence first."""
        found, token = await self._desk.store.alerts(alerts.query_from_proto(request))
        return pb.ListAlertsResponse(alerts=[alerts.alert_to_proto(item) for item in found], next_page_token=token)

    async def RaiseAlert(self, request: pb.RaiseAlertRequest, context: Any) -> pb.RaiseAlertResponse:
        """Keeps an alert of a context above."""
        await raise_alert(self._desk, alerts.told_from_proto(request))
        return pb.RaiseAlertResponse()

    async def AcknowledgeAlert(self, request: pb.AcknowledgeAlertRequest, context: Any) -> pb.AcknowledgeAlertResponse:
        """An operator has seen it."""
        seen = await acknowledge_alert(self._desk, request.alert_id)
        return pb.AcknowledgeAlertResponse(alert=alerts.alert_to_proto(seen))

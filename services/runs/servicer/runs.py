"""Inbound: decode, call the use-case, encode."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.paging import page_size
from libs.rpc.values import seconds_of
from pointsman.runs.v1 import run_pb2
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceServicer
from services.runs.app.check_production import check_production
from services.runs.app.command_run import Desk, cancel_run, pause_run, resume_run, steer_run
from services.runs.app.create_run import create_run
from services.runs.app.find_run import find_run, tenant_of
from services.runs.app.hub import Hub
from services.runs.app.join_run import join_run
from services.runs.app.list_runs import list_runs
from services.runs.app.measure_levels import Measure
from services.runs.app.plans import Plans
from services.runs.app.read_run import read_run
from services.runs.app.redrive_run import preview as preview_redrive
from services.runs.app.redrive_run import redrive_run, total
from services.runs.app.stream_events import list_events, stream_events
from services.runs.domain.run import Event, Run
from services.runs.wire import runs as wire
from services.runs.wire.levels import levels_to_proto, window_from_proto

JOIN_S = 30.0
"""How long a join waits that does not say."""


def _batch(events: Sequence[Event]) -> pb.StreamRunEventsResponse:
    return pb.StreamRunEventsResponse(events=[wire.event_to_proto(event) for event in events])


@dataclass(frozen=True, slots=True)
class Wakes:
    """Called so that work begins at once: `created` after a Run was added, `changed` after a command was kept."""

    created: Callable[[], None]
    changed: Callable[[], None]


class RunsServicer(RunsServiceServicer):
    """`pointsman.runs.v1.RunsService`."""

    def __init__(self, desk: Desk, plans: Plans, hub: Hub, wakes: Wakes, measure: Measure) -> None:
        self._desk = desk
        self._plans = plans
        self._hub = hub
        self._wakes = wakes
        self._measure = measure

    def _told(self, run: Run) -> run_pb2.Run:
        return wire.run_to_proto(self._plans.of(run), run, self._desk.world.clock.now())

    async def CreateRun(self, request: pb.CreateRunRequest, context: Any) -> pb.CreateRunResponse:
        """Creates a Run; answers before any work is done. With `validate_only`, only says what is wrong."""
        wire.refuse_oversize(request)
        production = wire.production_from_proto(request)
        if request.validate_only and production is not None:
            desk, run_id = self._desk, self._desk.world.ids.ulid()
            now = desk.world.clock.now()
            await check_production(desk.routing, desk.budgets, request.tenant, run_id, production, now)
            return pb.CreateRunResponse()
        run, replayed = await create_run(
            self._desk.runs,
            self._desk.routing,
            self._desk.world,
            self._desk.budgets,
            tenant=request.tenant,
            order=wire.order_from_proto(request),
            labels=dict(request.labels),
            production=production,
            budget_id=request.budget_id,
            key=request.idempotency_key,
            fingerprint=wire.fingerprint_of(request) if request.idempotency_key else "",
        )
        self._wakes.created()
        return pb.CreateRunResponse(run=self._told(run), replayed=replayed)

    async def FindRunByKey(self, request: pb.FindRunByKeyRequest, context: Any) -> pb.FindRunByKeyResponse:
        """The Run that an idempotency key made, if it made one."""
        run = await self._desk.runs.find_by_key(request.tenant, request.idempotency_key, request.fingerprint)
        return pb.FindRunByKeyResponse(run=self._told(run) if run is not None else None)

    async def GetRun(self, request: pb.GetRunRequest, context: Any) -> pb.GetRunResponse:
        """One Run."""
        run = await read_run(self._desk.runs, self._desk.routing, request.tenant, request.run_id)
        return pb.GetRunResponse(run=self._told(run))

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        """A page of Runs, newest first."""
        size = page_size(request.page_size)
        states = wire.states_from_proto(request.states)
        page, following = await list_runs(
            self._desk.runs, request.tenant, states, request.label, request.page_token, size
        )
        return pb.ListRunsResponse(runs=[self._told(run) for run in page], next_page_token=following)

    async def JoinRun(self, request: pb.JoinRunRequest, context: Any) -> pb.JoinRunResponse:
        """Waits until a Run is terminal or paused."""
        timeout_s = seconds_of(request.timeout) if request.HasField("timeout") else JOIN_S
        run = await join_run(self._hub, request.tenant, request.run_id, timeout_s)
        return pb.JoinRunResponse(run=self._told(run))

    async def CancelRun(self, request: pb.CancelRunRequest, context: Any) -> pb.CancelRunResponse:
        """Asks for a Run to end."""
        run = await cancel_run(self._desk, request.tenant, request.run_id, request.reason, who=request.actor)
        self._wakes.changed()
        return pb.CancelRunResponse(run=self._told(run))

    async def PauseRun(self, request: pb.PauseRunRequest, context: Any) -> pb.PauseRunResponse:
        """Holds a Run: nothing new is submitted; what providers have is followed."""
        tenant, run_id, reason = request.tenant, request.run_id, request.reason
        run, replayed = await pause_run(self._desk, tenant, run_id, reason, request.request_id, who=request.actor)
        return pb.PauseRunResponse(run=self._told(run), replayed=replayed)

    async def ResumeRun(self, request: pb.ResumeRunRequest, context: Any) -> pb.ResumeRunResponse:
        """Lets a paused Run go on."""
        tenant, run_id, reason = request.tenant, request.run_id, request.reason
        run, replayed = await resume_run(self._desk, tenant, run_id, reason, request.request_id, who=request.actor)
        self._wakes.changed()
        return pb.ResumeRunResponse(run=self._told(run), replayed=replayed)

    async def SteerRun(self, request: pb.SteerRunRequest, context: Any) -> pb.SteerRunResponse:
        """Accepts an input into a Run that is not terminal, durably."""
        data = wire.struct_to_dict(request.data)
        tenant, run_id, kind = request.tenant, request.run_id, request.kind
        steered = await steer_run(self._desk, self._plans, tenant, run_id, kind, data, request.request_id)
        return wire.steered_to_proto(steered, kind, self._plans.of(steered.run))

    async def RedriveRun(self, request: pb.RedriveRunRequest, context: Any) -> pb.RedriveRunResponse:
        """Runs a node again, with its history, or tells what that would touch and cost."""
        asked, replayed = wire.redrive_from_proto(request), False
        tenant = request.tenant or await tenant_of(self._desk.runs, request.run_id)
        if request.preview:
            run = await find_run(self._desk.runs, tenant, request.run_id)
            reached = await preview_redrive(self._desk, self._plans, run, asked)
        else:
            run, reached, replayed = await redrive_run(self._desk, self._plans, tenant, request.run_id, asked)
            self._wakes.changed()
        return wire.redriven_to_proto(self._told(run), reached, total(reached), replayed=replayed)

    async def GetServiceLevels(self, request: pb.GetServiceLevelsRequest, context: Any) -> pb.GetServiceLevelsResponse:
        """How well productions go."""
        return levels_to_proto(await self._measure.levels(window_from_proto(request)))

    async def StreamRunEvents(
        self, request: pb.StreamRunEventsRequest, context: Any
    ) -> AsyncIterator[pb.StreamRunEventsResponse]:
        """Its events after a cursor, and, when following, those to come."""
        tenant, run_id, after = request.tenant, request.run_id, request.after_sequence
        if after < 0:
            raise Fault.invalid(("/after_sequence", "must be 0 or above"))
        if not request.follow:
            size = page_size(request.page_size)
            yield _batch(await list_events(self._desk.runs, tenant, run_id, after, size))
            return
        async for events in stream_events(self._hub, tenant, run_id, after):
            yield _batch(events)

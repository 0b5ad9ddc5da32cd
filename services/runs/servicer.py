"""Inbound: decode, call the use-case, encode."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from libs.kernel.world import World
from pointsman.runs.v1 import runs_service_pb2 as pb
from pointsman.runs.v1.runs_service_pb2_grpc import RunsServiceServicer
from services.runs import wire
from services.runs.app.cancel_run import cancel_run
from services.runs.app.create_run import create_run
from services.runs.app.hub import Hub
from services.runs.app.join_run import join_run
from services.runs.app.list_runs import list_runs
from services.runs.app.read_run import read_run
from services.runs.app.stream_events import list_events, stream_events
from services.runs.domain.run import Event
from services.runs.ports import Routing, Runs

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000


def _batch(events: list[Event]) -> pb.StreamRunEventsResponse:
    return pb.StreamRunEventsResponse(events=[wire.event_to_proto(event) for event in events])


class RunsServicer(RunsServiceServicer):
    """`pointsman.runs.v1.RunsService`.

    `created` is called after a Run was added and `cancelled` after a cancel was kept, so that the work begins at once.
    """

    def __init__(
        self,
        runs: Runs,
        routing: Routing,
        hub: Hub,
        world: World,
        *,
        created: Callable[[], None],
        cancelled: Callable[[], None],
    ) -> None:
        self._runs = runs
        self._routing = routing
        self._hub = hub
        self._world = world
        self._created = created
        self._cancelled = cancelled

    async def CreateRun(self, request: pb.CreateRunRequest, context: Any) -> pb.CreateRunResponse:
        """Creates a Run; answers before any work is done."""
        run, replayed = await create_run(
            self._runs,
            self._routing,
            self._world,
            tenant=request.tenant,
            order=wire.order_from_proto(request),
            labels=dict(request.labels),
            key=request.idempotency_key,
            fingerprint=request.fingerprint,
        )
        self._created()
        return pb.CreateRunResponse(run=wire.run_to_proto(run), replayed=replayed)

    async def FindRunByKey(self, request: pb.FindRunByKeyRequest, context: Any) -> pb.FindRunByKeyResponse:
        """The Run that an idempotency key made, if it made one."""
        run = await self._runs.find_by_key(request.tenant, request.idempotency_key, request.fingerprint)
        return pb.FindRunByKeyResponse(run=wire.run_to_proto(run) if run is not None else None)

    async def GetRun(self, request: pb.GetRunRequest, context: Any) -> pb.GetRunResponse:
        """One Run."""
        run = await read_run(self._runs, self._routing, request.tenant, request.run_id)
        return pb.GetRunResponse(run=wire.run_to_proto(run))

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        """A page of Runs, newest first."""
        size = min(request.page_size or DEFAULT_PAGE, LARGEST_PAGE)
        states = wire.states_from_proto(request.states)
        page, following = await list_runs(self._runs, request.tenant, states, request.label, request.page_token, size)
        return pb.ListRunsResponse(runs=[wire.run_to_proto(run) for run in page], next_page_token=following)

    async def JoinRun(self, request: pb.JoinRunRequest, context: Any) -> pb.JoinRunResponse:
        """Waits until a Run is terminal or paused."""
        timeout_s = request.timeout.ToTimedelta().total_seconds()
        run = await join_run(self._runs, self._hub, request.tenant, request.run_id, timeout_s)
        return pb.JoinRunResponse(run=wire.run_to_proto(run))

    async def CancelRun(self, request: pb.CancelRunRequest, context: Any) -> pb.CancelRunResponse:
        """Asks for a Run to end."""
        run = await cancel_run(self._runs, self._world, request.tenant, request.run_id)
        self._cancelled()
        return pb.CancelRunResponse(run=wire.run_to_proto(run))

    async def StreamRunEvents(
        self, request: pb.StreamRunEventsRequest, context: Any
    ) -> AsyncIterator[pb.StreamRunEventsResponse]:
        """Its events after a cursor, and, when following, those to come."""
        if not request.follow:
            size = min(request.page_size or DEFAULT_PAGE, LARGEST_PAGE)
            yield _batch(await list_events(self._runs, request.tenant, request.run_id, request.after_sequence, size))
            return
        stream = stream_events(self._runs, self._hub, request.tenant, request.run_id, request.after_sequence)
        async for events in stream:
            yield _batch(events)

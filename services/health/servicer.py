"""Inbound: decode, call the use-case, encode."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from libs.rpc.batches import check_size, each
from pointsman.health.v1 import health_service_pb2 as pb
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceServicer
from services.health import wire
from services.health.app.apply_targets import ApplyTargets
from services.health.app.check_history import CheckHistory
from services.health.app.explain_state import ExplainState
from services.health.app.list_events import ListEvents
from services.health.app.report_outcome import ReportOutcome
from services.health.app.set_state import SetState
from services.health.app.snapshot import GetSnapshot
from services.health.app.watch import WatchSnapshot


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the servicer calls."""

    snapshot: GetSnapshot
    watch: WatchSnapshot
    report: ReportOutcome
    events: ListEvents
    set_state: SetState
    apply: ApplyTargets
    explain: ExplainState
    history: CheckHistory


class HealthServicer(HealthServiceServicer):
    """`pointsman.health.v1.HealthService`."""

    def __init__(self, use_cases: UseCases) -> None:
        self._do = use_cases

    async def GetSnapshot(self, request: pb.GetSnapshotRequest, context: Any) -> pb.GetSnapshotResponse:
        """The state of every subject at one moment."""
        wanted = [wire.subject_from_proto(subject, f"/subjects/{n}") for n, subject in enumerate(request.subjects)]
        return wire.snapshot_to_proto(await self._do.snapshot(wanted))

    async def WatchSnapshot(
        self, request: pb.WatchSnapshotRequest, context: Any
    ) -> AsyncIterator[pb.WatchSnapshotResponse]:
        """The snapshot now and after every change."""
        async with aclosing(self._do.watch()) as changes:
            async for snapshot in changes:
                yield wire.changes_to_proto(snapshot)

    async def ReportOutcome(self, request: pb.ReportOutcomeRequest, context: Any) -> pb.ReportOutcomeResponse:
        """The end of an Attempt; idempotent by Attempt."""
        return wire.reported_to_proto(await self._do.report(wire.outcome_from_proto(request.outcome)))

    async def BatchReportOutcomes(
        self, request: pb.BatchReportOutcomesRequest, context: Any
    ) -> pb.BatchReportOutcomesResponse:
        """The ends of several Attempts."""
        check_size(request.outcomes, "outcomes")
        told = await each(self._do.report(wire.outcome_from_proto(outcome)) for outcome in request.outcomes)
        return pb.BatchReportOutcomesResponse(responses=map(wire.reported_to_proto, told))

    async def ListHealthEvents(self, request: pb.ListHealthEventsRequest, context: Any) -> pb.ListHealthEventsResponse:
        """History, oldest first."""
        subject = wire.subject_from_proto(request.subject, "/subject") if request.HasField("subject") else None
        page = await self._do.events(subject, request.page_size, request.page_token)
        events = [wire.event_to_proto(recorded) for recorded in page.events]
        return pb.ListHealthEventsResponse(events=events, next_page_token=page.next_token)

    async def ExplainState(self, request: pb.ExplainStateRequest, context: Any) -> pb.ExplainStateResponse:
        """The state at a moment, and what brought it there."""
        subject = wire.subject_from_proto(request.subject, "/subject")
        return wire.explained_to_proto(await self._do.explain(subject, wire.moment_from_proto(request)))

    async def ListBreaches(self, request: pb.ListBreachesRequest, context: Any) -> pb.ListBreachesResponse:
        """What the running check found."""
        return wire.breaches_to_proto(self._do.history.breaches)

    async def SetState(self, request: pb.SetStateRequest, context: Any) -> pb.SetStateResponse:
        """An operator's word."""
        subject = wire.subject_from_proto(request.subject, "/subject")
        view = await self._do.set_state(subject, wire.state_from_proto(request.state), request.reason)
        return pb.SetStateResponse(subject=wire.view_to_proto(view))

    async def ApplyTargets(self, request: pb.ApplyTargetsRequest, context: Any) -> pb.ApplyTargetsResponse:
        """Declares the subjects and their thresholds."""
        targets = [wire.target_from_proto(target, n) for n, target in enumerate(request.targets)]
        revision = await self._do.apply(request.catalog_revision, targets)
        return pb.ApplyTargetsResponse(catalog_revision=revision)

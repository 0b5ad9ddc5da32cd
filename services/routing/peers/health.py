"""`Health` over `HealthService`."""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any

from libs.rpc.faulting import faulting
from pointsman.health.v1 import health_service_pb2 as pb
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from services.routing.domain.calls.call import Try
from services.routing.domain.catalog import Catalog
from services.routing.domain.refusals import HealthCause
from services.routing.domain.task import Attempt, Failure
from services.routing.peers.batches import Batches
from services.routing.ports import HealthViews
from services.routing.wire import peers as wire


class RemoteHealth:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float) -> None:
        self._stub = HealthServiceStub(channel)
        self._timeout_s = timeout_s
        self._reports: Batches[pb.ReportOutcomeRequest, None] = Batches(
            self._report_all, lambda told: told.outcome.attempt_id
        )

    @faulting
    async def snapshot(self) -> HealthViews:
        """See the port."""
        return wire.health_views(await self._stub.GetSnapshot(pb.GetSnapshotRequest(), timeout=self._timeout_s))

    def report(
        self, attempt: Attempt | Try, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
    ) -> Awaitable[None]:
        """See the port."""
        return self._reports.begin(wire.outcome_to_proto(attempt, failure, dispatched_at, observed_at))

    @faulting
    async def _report_all(self, group: Sequence[pb.ReportOutcomeRequest]) -> Sequence[None]:
        if len(group) == 1:
            await self._stub.ReportOutcome(group[0], timeout=self._timeout_s)
        else:
            asked = pb.BatchReportOutcomesRequest(outcomes=[told.outcome for told in group])
            await self._stub.BatchReportOutcomes(asked, timeout=self._timeout_s)
        return [None] * len(group)

    @faulting
    async def apply_targets(self, catalog: Catalog) -> int:
        """See the port."""
        answer = await self._stub.ApplyTargets(wire.targets_to_proto(catalog), timeout=self._timeout_s)
        return int(answer.catalog_revision)

    @faulting
    async def cause_of(self, sort: str, name: str, revision: int) -> HealthCause:
        """See the port."""
        asked = pb.ExplainStateRequest(subject=wire.subject_to_proto(sort, name), revision=revision)
        return wire.cause_from_proto(await self._stub.ExplainState(asked, timeout=self._timeout_s))

    @faulting
    async def breaches(self) -> Mapping[str, str]:
        """See the port."""
        answer = await self._stub.ListBreaches(pb.ListBreachesRequest(), timeout=self._timeout_s)
        return {item.subject.id: item.description for item in answer.breaches}

"""Health over its stub."""

from datetime import datetime
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.faulting import faulting
from libs.rpc.values import time_to_proto
from pointsman.common.v1 import subject_pb2
from pointsman.health.v1 import health_service_pb2 as pb
from pointsman.health.v1.health_pb2 import HealthState
from pointsman.health.v1.health_service_pb2_grpc import HealthServiceStub
from services.edge.domain import past_shapes, shapes
from services.edge.wire import operations, pasts

TIMEOUT_S = 10.0


class HealthPeer:
    """Implements `ports.Health`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = HealthServiceStub(channel)

    @faulting
    async def snapshot(self) -> shapes.Health:
        """See the port."""
        return operations.health(await self._stub.GetSnapshot(pb.GetSnapshotRequest(), timeout=TIMEOUT_S))

    @faulting
    async def set_circuit(self, sort: str, subject_id: str, opened: bool, reason: str) -> shapes.SubjectHealth:
        """See the port. What is disabled stays so: the catalogue's word is taken back there."""
        subject = _subject(sort, subject_id)
        known = await self._stub.GetSnapshot(pb.GetSnapshotRequest(subjects=[subject]), timeout=TIMEOUT_S)
        if any(one.subject == subject and one.state == HealthState.HEALTH_STATE_DISABLED for one in known.subjects):
            raise Fault.of("conflict", f"{sort} {subject_id} is disabled; enable it first")
        state = HealthState.HEALTH_STATE_CIRCUIT_OPEN if opened else HealthState.HEALTH_STATE_HEALTHY
        request = pb.SetStateRequest(subject=subject, state=state, reason=reason)
        return operations.subject_health((await self._stub.SetState(request, timeout=TIMEOUT_S)).subject)

    @faulting
    async def past(self, sort: str, subject_id: str, at: datetime | None) -> past_shapes.PastHealth:
        """See the port."""
        request = pb.ExplainStateRequest(subject=_subject(sort, subject_id), at_time=time_to_proto(at))
        return pasts.past_health(await self._stub.ExplainState(request, timeout=TIMEOUT_S))

    @faulting
    async def ping(self) -> None:
        """See the port. Asks for a subject that does not exist: the cheapest question that reaches the store."""
        nobody = subject_pb2.Subject(kind=operations.CHANNEL, id="-")
        await self._stub.GetSnapshot(pb.GetSnapshotRequest(subjects=[nobody]), timeout=TIMEOUT_S)


def _subject(sort: str, subject_id: str) -> subject_pb2.Subject:
    kind = operations.CHANNEL if sort == "channel" else operations.SUPPLY
    return subject_pb2.Subject(kind=kind, id=subject_id)

"""`Capacity` over `CapacityService`."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from libs.kernel.clock import Clock
from libs.rpc.faulting import faulting
from libs.rpc.values import seconds_to_proto
from pointsman.capacity.v1 import capacity_service_pb2 as pb
from pointsman.capacity.v1.capacity_pb2 import Lease
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from services.routing.domain.catalog import Catalog, Supply
from services.routing.domain.decision import HealthView
from services.routing.domain.feedback import SILENT, Feedback
from services.routing.peers.batches import Batches
from services.routing.ports import CapacityViews, Refused, Reserved
from services.routing.wire import peers as wire

HOLDER = "routing"
"""One name for all replicas: whoever lives renews and releases. Who may write of a Task is decided by its epoch."""
HOLDER_OF_CALLS = "routing.calls"
"""Of synchronous calls, whose leases nobody renews and no check compares with Attempts of Tasks."""


def _lease_of(asked: pb.ReserveRequest | pb.ReleaseRequest) -> str:
    return asked.lease_id


@dataclass(slots=True)
class _Given:
    """A lease that this process was given, and when, by its monotonic clock, it was given and last prolonged."""

    lease: Lease
    given_at: float
    prolonged_at: float


class RemoteCapacity:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float, ttl_s: float, clock: Clock, holder: str = HOLDER) -> None:
        self._holder = holder
        self._stub = CapacityServiceStub(channel)
        self._timeout_s = timeout_s
        self._ttl_s = ttl_s
        self._clock = clock
        self._given: dict[str, _Given] = {}  # it teaches a store that forgot (CAP-9)
        self._reservations: Batches[pb.ReserveRequest, Reserved | Refused] = Batches(self._reserve_all, _lease_of)
        self._releases: Batches[pb.ReleaseRequest, None] = Batches(self._release_all, _lease_of)

    @faulting
    async def snapshot(self) -> CapacityViews:
        """See the port."""
        return wire.capacity_views(await self._stub.GetCapacity(pb.GetCapacityRequest(), timeout=self._timeout_s))

    def reserve(
        self,
        lease_id: str,
        supply: Supply,
        channel_health: HealthView,
        supply_health: HealthView,
        *,
        tokens: int = 0,
        ttl_s: float | None = None,
    ) -> Awaitable[Reserved | Refused]:
        """See the ports."""
        lives_s = self._ttl_s if ttl_s is None else ttl_s
        asked = wire.reserve_to_proto(
            lease_id, self._holder, supply, channel_health, supply_health, lives_s, tokens=tokens
        )
        return self._reservations.begin(asked)

    @faulting
    async def _reserve_all(self, group: Sequence[pb.ReserveRequest]) -> Sequence[Reserved | Refused]:
        if len(group) == 1:
            return [self._reserved(await self._stub.Reserve(group[0], timeout=self._timeout_s))]
        asked = pb.BatchReserveRequest(requests=group)
        return list(map(self._reserved, (await self._stub.BatchReserve(asked, timeout=self._timeout_s)).responses))

    def _reserved(self, answer: pb.ReserveResponse) -> Reserved | Refused:
        if answer.HasField("lease"):
            now = self._clock.monotonic()
            self._given[answer.lease.id] = _Given(answer.lease, now, now)
        return wire.reserved_from_proto(answer)

    @faulting
    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """See the port."""
        now = self._clock.monotonic()
        self._given = {name: given for name, given in self._given.items() if now < given.prolonged_at + self._ttl_s}
        known = [self._as_prolonged(self._given[name]) for name in lease_ids if name in self._given]
        ttl = seconds_to_proto(self._ttl_s)
        asked = pb.RenewLeasesRequest(holder=self._holder, lease_ids=lease_ids, ttl=ttl, leases=known)
        answer = await self._stub.RenewLeases(asked, timeout=self._timeout_s)
        for name in answer.renewed_lease_ids:
            if name in self._given:
                self._given[name].prolonged_at = now
        for name in answer.lost_lease_ids:
            self._given.pop(name, None)
        return frozenset(answer.lost_lease_ids)

    def _as_prolonged(self, given: _Given) -> Lease:
        """With the end that its last renewal gave it, by the time of capacity, of which only intervals are known."""
        told = Lease()
        told.CopyFrom(given.lease)
        until_s = given.prolonged_at - given.given_at + self._ttl_s
        told.expire_time.FromNanoseconds(told.reserve_time.ToNanoseconds() + round(until_s * 1_000_000_000))
        return told

    def release(self, lease_id: str, feedback: Feedback = SILENT) -> Awaitable[None]:
        """See the port."""
        self._given.pop(lease_id, None)
        return self._releases.begin(wire.release_to_proto(lease_id, self._holder, feedback))

    @faulting
    async def _release_all(self, group: Sequence[pb.ReleaseRequest]) -> Sequence[None]:
        if len(group) == 1:
            await self._stub.Release(group[0], timeout=self._timeout_s)
        else:
            await self._stub.BatchRelease(pb.BatchReleaseRequest(requests=group), timeout=self._timeout_s)
        return [None] * len(group)

    @faulting
    async def held(self) -> Sequence[tuple[str, datetime]]:
        """See the port."""
        nothing_else = [wire.subject_to_proto("supply", "-")]
        asked = pb.GetCapacityRequest(subjects=nothing_else, include_leases=True)
        return wire.held_leases(await self._stub.GetCapacity(asked, timeout=self._timeout_s), self._holder)

    @faulting
    async def apply_limits(self, catalog: Catalog) -> int:
        """See the port."""
        answer = await self._stub.ApplyLimits(wire.limits_to_proto(catalog), timeout=self._timeout_s)
        return int(answer.catalog_revision)

    @faulting
    async def apply_health(self, channels: Mapping[str, HealthView], supplies: Mapping[str, HealthView]) -> None:
        """See the port."""
        await self._stub.ApplyLimits(wire.health_limits_to_proto(channels, supplies), timeout=self._timeout_s)

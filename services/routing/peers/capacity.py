"""`Capacity` over `CapacityService`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from libs.kernel.clock import Clock
from libs.rpc.faulting import faulting
from pointsman.capacity.v1 import capacity_service_pb2 as pb
from pointsman.capacity.v1.capacity_pb2 import Lease
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from services.routing.domain.catalog import Catalog, Supply
from services.routing.domain.decision import HealthView
from services.routing.domain.feedback import SILENT, Feedback
from services.routing.ports import CapacityViews, Refused, Reserved
from services.routing.wire import peers as wire

HOLDER = "routing"
"""One name for all replicas: whoever lives renews and releases. Who may write of a Task is decided by its epoch."""
HOLDER_OF_CALLS = "routing.calls"
"""Of synchronous calls, whose leases nobody renews and no check compares with Attempts of Tasks."""


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

    @faulting
    async def snapshot(self) -> CapacityViews:
        """See the port."""
        return wire.capacity_views(await self._stub.GetCapacity(pb.GetCapacityRequest(), timeout=self._timeout_s))

    @faulting
    async def reserve(
        self,
        lease_id: str,
        supply: Supply,
        channel_health: HealthView,
        supply_health: HealthView,
        *,
        tokens: int = 0,
        ttl_s: float | None = None,
    ) -> Reserved | Refused:
        """See the ports."""
        lives_s = self._ttl_s if ttl_s is None else ttl_s
        asked = wire.reserve_to_proto(
            lease_id, self._holder, supply, channel_health, supply_health, lives_s, tokens=tokens
        )
        answer = await self._stub.Reserve(asked, timeout=self._timeout_s)
        if answer.HasField("lease"):
            now = self._clock.monotonic()
            self._given[lease_id] = _Given(answer.lease, now, now)
        return wire.reserved_from_proto(answer)

    @faulting
    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """See the port."""
        now = self._clock.monotonic()
        self._given = {name: given for name, given in self._given.items() if now < given.prolonged_at + self._ttl_s}
        known = [self._as_prolonged(self._given[name]) for name in lease_ids if name in self._given]
        ttl = wire.duration(self._ttl_s)
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

    @faulting
    async def release(self, lease_id: str, feedback: Feedback = SILENT) -> None:
        """See the port."""
        self._given.pop(lease_id, None)
        await self._stub.Release(wire.release_to_proto(lease_id, self._holder, feedback), timeout=self._timeout_s)

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

"""`Capacity` over `CapacityService`."""

from collections.abc import Mapping, Sequence
from typing import Any

from libs.rpc.faulting import faulting
from pointsman.capacity.v1 import capacity_service_pb2 as pb
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceStub
from services.routing.domain.catalog import Catalog, Supply
from services.routing.domain.decision import CapacityView, HealthView
from services.routing.ports import Refused, Reserved
from services.routing.wire import peers as wire

HOLDER = "routing"
"""One name for all replicas: whoever lives renews and releases. Who may write of a Task is decided by its epoch."""


class RemoteCapacity:
    """See the port."""

    def __init__(self, channel: Any, timeout_s: float, ttl_s: float) -> None:
        self._stub = CapacityServiceStub(channel)
        self._timeout_s = timeout_s
        self._ttl_s = ttl_s

    @faulting
    async def snapshot(
        self,
    ) -> tuple[Mapping[str, CapacityView], Mapping[str, CapacityView], Mapping[str, CapacityView]]:
        """See the port."""
        return wire.capacity_views(await self._stub.GetCapacity(pb.GetCapacityRequest(), timeout=self._timeout_s))

    @faulting
    async def reserve(
        self, lease_id: str, supply: Supply, channel_health: HealthView, supply_health: HealthView
    ) -> Reserved | Refused:
        """See the port."""
        asked = wire.reserve_to_proto(lease_id, HOLDER, supply, channel_health, supply_health, self._ttl_s)
        return wire.reserved_from_proto(await self._stub.Reserve(asked, timeout=self._timeout_s))

    @faulting
    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """See the port."""
        asked = pb.RenewLeasesRequest(holder=HOLDER, lease_ids=lease_ids, ttl=wire.duration(self._ttl_s))
        return frozenset((await self._stub.RenewLeases(asked, timeout=self._timeout_s)).lost_lease_ids)

    @faulting
    async def release(self, lease_id: str) -> None:
        """See the port."""
        await self._stub.Release(pb.ReleaseRequest(lease_id=lease_id, holder=HOLDER), timeout=self._timeout_s)

    @faulting
    async def apply_limits(self, catalog: Catalog) -> int:
        """See the port."""
        answer = await self._stub.ApplyLimits(wire.limits_to_proto(catalog), timeout=self._timeout_s)
        return int(answer.catalog_revision)

    @faulting
    async def apply_health(self, channels: Mapping[str, HealthView], supplies: Mapping[str, HealthView]) -> None:
        """See the port."""
        await self._stub.ApplyLimits(wire.health_limits_to_proto(channels, supplies), timeout=self._timeout_s)

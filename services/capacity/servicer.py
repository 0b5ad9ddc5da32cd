"""Inbound: decode, call the use-case, encode."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from libs.rpc.batches import check_size
from pointsman.capacity.v1 import capacity_service_pb2 as pb
from pointsman.capacity.v1.capacity_service_pb2_grpc import CapacityServiceServicer
from services.capacity import wire
from services.capacity.app.apply_limits import ApplyLimits
from services.capacity.app.get_capacity import GetCapacity
from services.capacity.app.release import Release
from services.capacity.app.renew import Renew
from services.capacity.app.reserve import Reserve
from services.capacity.app.watch import WatchCapacity


@dataclass(frozen=True, slots=True)
class UseCases:
    """What the servicer calls."""

    reserve: Reserve
    renew: Renew
    release: Release
    get_capacity: GetCapacity
    watch: WatchCapacity
    apply: ApplyLimits


class CapacityServicer(CapacityServiceServicer):
    """`pointsman.capacity.v1.CapacityService`."""

    def __init__(self, use_cases: UseCases) -> None:
        self._do = use_cases

    async def Reserve(self, request: pb.ReserveRequest, context: Any) -> pb.ReserveResponse:
        """Decides all gates of all levels atomically."""
        return wire.reserved_to_proto(await self._do.reserve(wire.request_from_proto(request)))

    async def BatchReserve(self, request: pb.BatchReserveRequest, context: Any) -> pb.BatchReserveResponse:
        """Decides several reservations, each as if alone."""
        check_size(request.requests, "requests")
        outcomes = await self._do.reserve.each([wire.request_from_proto(asked) for asked in request.requests])
        return pb.BatchReserveResponse(responses=map(wire.reserved_to_proto, outcomes))

    async def RenewLeases(self, request: pb.RenewLeasesRequest, context: Any) -> pb.RenewLeasesResponse:
        """Prolongs leases of one holder."""
        taught = [wire.lease_from_proto(lease) for lease in request.leases]
        renewal = await self._do.renew(request.holder, request.lease_ids, wire.ttl_from_proto(request.ttl), taught)
        return wire.renewal_to_proto(renewal)

    async def Release(self, request: pb.ReleaseRequest, context: Any) -> pb.ReleaseResponse:
        """Gives a lease back."""
        (freed,) = await self._do.release.each((wire.return_from_proto(request),))
        return pb.ReleaseResponse(released=freed)

    async def BatchRelease(self, request: pb.BatchReleaseRequest, context: Any) -> pb.BatchReleaseResponse:
        """Gives several leases back."""
        check_size(request.requests, "requests")
        freed = await self._do.release.each([wire.return_from_proto(asked) for asked in request.requests])
        return pb.BatchReleaseResponse(responses=[pb.ReleaseResponse(released=one) for one in freed])

    async def GetCapacity(self, request: pb.GetCapacityRequest, context: Any) -> pb.GetCapacityResponse:
        """The present figures of every level."""
        wanted = [wire.subject_from_proto(subject, f"/subjects/{n}") for n, subject in enumerate(request.subjects)]
        return wire.view_to_proto(await self._do.get_capacity(wanted, request.include_leases))

    async def WatchCapacity(
        self, request: pb.WatchCapacityRequest, context: Any
    ) -> AsyncIterator[pb.WatchCapacityResponse]:
        """Tells when capacity was freed."""
        async with aclosing(self._do.watch()) as hints:
            async for subjects in hints:
                yield wire.hint_to_proto(subjects)

    async def ApplyLimits(self, request: pb.ApplyLimitsRequest, context: Any) -> pb.ApplyLimitsResponse:
        """Declares the levels, and what health allows them."""
        levels = [wire.level_from_proto(level, n) for n, level in enumerate(request.limits)]
        revision = await self._do.apply(request.catalog_revision, levels, wire.told_health(request.health))
        return pb.ApplyLimitsResponse(catalog_revision=revision)

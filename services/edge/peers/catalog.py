"""Routing's catalogue over its stub."""

from collections.abc import Mapping
from typing import Any

from libs.rpc.faulting import faulting
from pointsman.routing.v1 import catalog_service_pb2 as pb
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceStub
from services.edge.domain import evidence_shapes, shapes
from services.edge.domain.quotas import Quotas
from services.edge.wire import catalog as wire_catalog

TIMEOUT_S = 10.0
APPLY_TIMEOUT_S = 30.0
PAGE = 500


class CatalogPeer:
    """Implements `ports.Catalog`."""

    def __init__(self, channel: Any) -> None:
        self._stub: Any = CatalogServiceStub(channel)

    @faulting
    async def models(self, tenant: str) -> list[shapes.Model]:
        """See the port."""
        reply = await self._stub.ListModels(pb.ListModelsRequest(tenant=tenant), timeout=TIMEOUT_S)
        return [wire_catalog.model(item) for item in reply.models]

    @faulting
    async def quotas(self) -> Mapping[str, Quotas]:
        """See the port."""
        return {item.id: wire_catalog.quotas(item.spec) for item in (await self.show("tenant", False)).objects}

    @faulting
    async def apply(self, text: str, merge: bool) -> shapes.Applied:
        """See the port."""
        reply = await self._stub.Apply(pb.ApplyRequest(catalog_yaml=text, merge=merge), timeout=APPLY_TIMEOUT_S)
        return wire_catalog.applied(reply)

    @faulting
    async def diff(self, text: str, merge: bool) -> shapes.CatalogDiff:
        """See the port."""
        reply = await self._stub.Diff(pb.DiffRequest(catalog_yaml=text, merge=merge), timeout=APPLY_TIMEOUT_S)
        return shapes.CatalogDiff([wire_catalog.change(item) for item in reply.changes])

    @faulting
    async def show(self, kind: str, retired: bool) -> shapes.Catalog:
        """See the port."""
        objects: list[shapes.CatalogObject] = []
        token = ""
        while True:
            number = wire_catalog.kind_number(kind)
            request = pb.ListRequest(kind=number, include_retired=retired, page_size=PAGE, page_token=token)
            reply = await self._stub.List(request, timeout=TIMEOUT_S)
            objects.extend(wire_catalog.catalog_object(item) for item in reply.objects)
            token = reply.next_page_token
            if not token:
                return shapes.Catalog(reply.revision, objects)

    @faulting
    async def publish(self, model_id: str) -> shapes.Publication:
        """See the port."""
        reply = await self._stub.Publish(pb.PublishRequest(model_id=model_id), timeout=APPLY_TIMEOUT_S)
        return wire_catalog.publication(reply.publication)

    @faulting
    async def verify(self, supply_id: str, verification_id: str, wait_s: float) -> evidence_shapes.Verification:
        """See the port."""
        request = pb.VerifySupplyRequest(supply_id=supply_id, request_id=verification_id)
        request.wait.FromMilliseconds(int(wait_s * 1000))
        reply = await self._stub.VerifySupply(request, timeout=wait_s + APPLY_TIMEOUT_S)
        return wire_catalog.verification(reply.verification)

    @faulting
    async def set_admin_state(self, sort: str, subject_id: str, state: str, reason: str) -> shapes.CatalogObject:
        """See the port."""
        request = wire_catalog.admin_request(sort, subject_id, state, reason)
        reply = await self._stub.SetAdminState(request, timeout=APPLY_TIMEOUT_S)
        return wire_catalog.catalog_object(reply.object)

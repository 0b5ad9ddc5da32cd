"""Inbound: `pointsman.routing.v1.CatalogService`. Decode, call the use-case, encode."""

from typing import Any

from pointsman.routing.v1 import catalog_service_pb2 as pb
from pointsman.routing.v1.catalog_service_pb2_grpc import CatalogServiceServicer
from services.routing.app.apply_catalog import apply_catalog
from services.routing.app.catalog_desk import CatalogDesk
from services.routing.app.diff_catalog import diff_catalog
from services.routing.app.list_models import list_models
from services.routing.app.present_objects import present_objects
from services.routing.app.publish_model import publish_model
from services.routing.app.read_objects import get_object, list_objects
from services.routing.app.set_admin_state import set_admin_state
from services.routing.app.verify_supply import VerifySupply
from services.routing.wire import catalog as wire
from services.routing.wire import verification as wire_verification


class CatalogServicer(CatalogServiceServicer):
    """The catalogue's door."""

    def __init__(self, desk: CatalogDesk, verify: VerifySupply) -> None:
        self._desk = desk
        self._verify = verify

    async def Apply(self, request: pb.ApplyRequest, context: Any) -> pb.ApplyResponse:
        """Applies a catalogue file; a bad one changes nothing and names every fault by path."""
        plan = await apply_catalog(self._desk, request.catalog_yaml, request.merge)
        return pb.ApplyResponse(
            revision=plan.holdings.revision,
            changes=[wire.change_to_proto(change) for change in plan.changes],
            publications=[wire.standing_to_proto(standing) for standing in plan.standings],
        )

    async def Diff(self, request: pb.DiffRequest, context: Any) -> pb.DiffResponse:
        """What Apply would change."""
        changes = await diff_catalog(self._desk, request.catalog_yaml, request.merge)
        return pb.DiffResponse(changes=[wire.change_to_proto(change) for change in changes])

    async def Get(self, request: pb.GetRequest, context: Any) -> pb.GetResponse:
        """One object, at its newest or a given revision."""
        kind = wire.kind_from_proto(request.kind)
        found = await get_object(self._desk.store, kind, request.id, request.revision)
        return pb.GetResponse(object=wire.object_to_proto(found))

    async def List(self, request: pb.ListRequest, context: Any) -> pb.ListResponse:
        """Objects of one sort, or of all."""
        kind = wire.kind_or_all(request.kind)
        page, token = await list_objects(
            self._desk.store, kind, request.include_retired, request.page_size, request.page_token
        )
        return pb.ListResponse(
            objects=[wire.presented_to_proto(item) for item in await present_objects(self._desk, page)],
            next_page_token=token,
            revision=await self._desk.store.revision(),
        )

    async def Publish(self, request: pb.PublishRequest, context: Any) -> pb.PublishResponse:
        """Opens a model to callers, if it passes the gate."""
        standing = await publish_model(self._desk, request.model_id)
        return pb.PublishResponse(publication=wire.standing_to_proto(standing))

    async def SetAdminState(self, request: pb.SetAdminStateRequest, context: Any) -> pb.SetAdminStateResponse:
        """An operator's word on a Channel or Supply."""
        kind, object_id = wire.subject_from_proto(request.subject)
        state = wire.admin_from_proto(request.state)
        changed = await set_admin_state(self._desk, kind, object_id, state, request.reason)
        return pb.SetAdminStateResponse(object=wire.object_to_proto(changed))

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        """The published models that a tenant may use."""
        models = await list_models(self._desk, request.tenant)
        return pb.ListModelsResponse(models=[wire.model_to_proto(listed) for listed in models])

    async def VerifySupply(self, request: pb.VerifySupplyRequest, context: Any) -> pb.VerifySupplyResponse:
        """Runs a Supply's regression set; the same request_id goes on with it."""
        verification = await self._verify(*wire_verification.asked_from_proto(request))
        return pb.VerifySupplyResponse(verification=wire_verification.verification_to_proto(verification))

"""The catalogue of routing."""

from collections.abc import Mapping
from typing import Any

from libs.rpc.values import struct_to_dict
from pointsman.common.v1 import subject_pb2
from pointsman.routing.v1 import catalog_pb2, catalog_service_pb2, verification_pb2
from services.edge.domain import evidence_shapes, shapes
from services.edge.domain.quotas import Quotas
from services.edge.wire.values import amount, moment, word

OWNER = "pointsman"


def kind_number(kind: str) -> catalog_pb2.CatalogKind.ValueType:
    """The sort of that name; "" means all."""
    return catalog_pb2.CatalogKind.Value(f"CATALOG_KIND_{(kind or 'unspecified').upper()}")


def model(message: catalog_pb2.PublicModel) -> shapes.Model:
    """A Public Model."""
    return shapes.Model(
        id=message.id,
        object="model",
        created=message.create_time.seconds,
        owned_by=OWNER,
        kind=message.kind,
        profile=message.profile or None,
        limits=struct_to_dict(message.limits),
        price_range=[struct_to_dict(item) for item in message.price_range],
        degradations=[struct_to_dict(item) for item in message.degradations],
    )


def applied(message: catalog_service_pb2.ApplyResponse) -> shapes.Applied:
    """What changed."""
    return shapes.Applied(
        revision=message.revision,
        changes=[change(item) for item in message.changes],
        publications=[publication(item) for item in message.publications],
    )


def change(message: catalog_pb2.CatalogChange) -> shapes.CatalogChange:
    """One difference."""
    kind = word(catalog_pb2.CatalogKind, message.kind, "CATALOG_KIND_")
    return shapes.CatalogChange(kind, message.id, message.change, list(message.details))


def publication(message: catalog_pb2.Publication) -> shapes.Publication:
    """A model's standing."""
    return shapes.Publication(message.model_id, message.published, list(message.reasons))


def quotas(spec: Mapping[str, Any]) -> Quotas:
    """Those of a tenant's declaration that the edge keeps."""
    return Quotas(rpm=int((spec.get("quotas") or {}).get("rpm", 0)))


def catalog_object(message: catalog_pb2.CatalogObject) -> shapes.CatalogObject:
    """One object as declared. A Channel or Supply is enabled by its administrative state, a model by its own flag."""
    kind = word(catalog_pb2.CatalogKind, message.kind, "CATALOG_KIND_")
    spec = struct_to_dict(message.spec)
    return shapes.CatalogObject(
        kind=kind,
        id=message.id,
        revision=message.revision,
        spec=spec,
        enabled=spec.get("admin", "enabled") == "enabled" if kind in {"channel", "supply"} else message.enabled,
        published=message.published,
        retired=message.retired,
        created_at=moment(message.create_time),
        evidence=message.evidence or None,
        reasons=list(message.reasons),
    )


def verification(message: verification_pb2.Verification) -> evidence_shapes.Verification:
    """A run of a supply's regression set."""
    return evidence_shapes.Verification(
        id=message.id,
        supply=message.supply_id,
        upstream_model=message.upstream_model,
        capability_version=message.capability_version,
        status=_status(message.state),
        cases=[
            evidence_shapes.VerificationCase(
                item.name,
                item.task_id or None,
                item.call_id or None,
                _status(item.state),
                list(item.reasons),
                amount(item.cost),
            )
            for item in message.cases
        ],
        cost=amount(message.cost),
        started_at=moment(message.start_time),
        finished_at=moment(message.finish_time),
    )


def _status(number: int) -> str:
    return word(verification_pb2.VerificationState, number, "VERIFICATION_STATE_")


def admin_request(sort: str, subject_id: str, state: str, reason: str) -> catalog_service_pb2.SetAdminStateRequest:
    """An operator's word on a Channel or Supply."""
    return catalog_service_pb2.SetAdminStateRequest(
        subject=subject_pb2.Subject(kind=subject_pb2.SubjectKind.Value(f"SUBJECT_KIND_{sort.upper()}"), id=subject_id),
        state=catalog_pb2.AdminState.Value(f"ADMIN_STATE_{state.upper()}"),
        reason=reason,
    )

"""Messages of the catalogue to domain values and back. Total in both directions; nothing else happens here."""

from libs.faults.fault import Fault
from libs.rpc.values import struct_from, time_to_proto
from pointsman.common.v1 import subject_pb2
from pointsman.routing.v1 import catalog_pb2 as pb
from services.routing.app.list_models import Listed
from services.routing.app.present_objects import Presented
from services.routing.domain.catalog import Admin
from services.routing.domain.catalog_diff import Change
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import ObjectRevision
from services.routing.domain.disclosure import Loss, PriceRange
from services.routing.domain.guardrails import amount
from services.routing.domain.publication import Standing

KIND_NUMBERS = {kind: pb.CatalogKind.Value(f"CATALOG_KIND_{kind.name}") for kind in ObjectKind}
KINDS: dict[int, ObjectKind] = {number: kind for kind, number in KIND_NUMBERS.items()}
ADMIN_NUMBERS = {state: pb.AdminState.Value(f"ADMIN_STATE_{state.name}") for state in Admin}
ADMINS: dict[int, Admin] = {number: state for state, number in ADMIN_NUMBERS.items()}
SUBJECTS = {
    subject_pb2.SUBJECT_KIND_CHANNEL: ObjectKind.CHANNEL,
    subject_pb2.SUBJECT_KIND_SUPPLY: ObjectKind.SUPPLY,
}


def kind_from_proto(number: int) -> ObjectKind:
    """A sort of object. Fault `validation_failed` if it is not set or not known."""
    if number not in KINDS:
        raise Fault.invalid(("/kind", f"must be one of {', '.join(ObjectKind)}"))
    return KINDS[number]


def kind_or_all(number: int) -> ObjectKind | None:
    """A sort of object; None = all of them."""
    return None if number == pb.CATALOG_KIND_UNSPECIFIED else kind_from_proto(number)


def subject_from_proto(subject: subject_pb2.Subject) -> tuple[ObjectKind, str]:
    """A Channel or Supply. Fault `validation_failed` for anything else."""
    if subject.kind not in SUBJECTS:
        raise Fault.invalid(("/subject/kind", "must be a channel or a supply"))
    return SUBJECTS[subject.kind], subject.id


def admin_from_proto(number: int) -> Admin:
    """What an operator allows. Fault `validation_failed` if it is not set or not known."""
    if number not in ADMINS:
        raise Fault.invalid(("/state", f"must be one of {', '.join(Admin)}"))
    return ADMINS[number]


def presented_to_proto(presented: Presented) -> pb.CatalogObject:
    """One object with how it stands."""
    message = object_to_proto(presented.item)
    message.evidence = presented.evidence
    message.reasons.extend(presented.reasons)
    return message


def object_to_proto(item: ObjectRevision) -> pb.CatalogObject:
    """One object at one revision, with the operator's word in its declaration."""
    return pb.CatalogObject(
        kind=KIND_NUMBERS[item.kind],
        id=item.id,
        revision=item.revision,
        spec=struct_from(item.effective_spec),
        enabled=item.enabled,
        published=item.published,
        retired=item.retired,
        create_time=time_to_proto(item.created_at),
    )


def change_to_proto(change: Change) -> pb.CatalogChange:
    """One difference."""
    return pb.CatalogChange(kind=KIND_NUMBERS[change.kind], id=change.id, change=change.change, details=change.details)


def standing_to_proto(standing: Standing) -> pb.Publication:
    """A model's standing, with every reason against it."""
    return pb.Publication(model_id=standing.model, published=standing.published, reasons=standing.words())


def model_to_proto(listed: Listed) -> pb.PublicModel:
    """A Public Model as callers see it."""
    model = listed.model
    return pb.PublicModel(
        id=model.id,
        kind=str(model.kind),
        profile=model.profile,
        limits=struct_from(model.limits),
        price_range=[struct_from(_price(price)) for price in listed.prices],
        degradations=[struct_from(_loss(loss)) for loss in listed.losses],
        create_time=time_to_proto(listed.declared_at),
    )


def _price(price: PriceRange) -> dict[str, str]:
    return {
        "billing_mode": price.billing_mode,
        "currency": price.currency,
        "low": amount(price.low),
        "high": amount(price.high),
        "per": price.per,
    }


def _loss(loss: Loss) -> dict[str, object]:
    return {"to_profile": loss.to_profile, "drops": list(loss.drops), "discloses": loss.discloses}

"""Objects of the catalogue with how they stand: the evidence of a Supply, and why a model is closed (CAT-3, CAT-7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.routing.app.catalog_desk import CatalogDesk
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import ObjectRevision
from services.routing.domain.catalog_plan import standing_now
from services.routing.domain.publication import Surroundings
from services.routing.domain.verification import evidence_words


@dataclass(frozen=True, slots=True)
class Presented:
    """One object. `evidence` is a Supply's, `reasons` are a closed model's."""

    item: ObjectRevision
    evidence: str = ""
    reasons: tuple[str, ...] = ()


async def present_objects(desk: CatalogDesk, page: Sequence[ObjectRevision]) -> list[Presented]:
    """The same objects in the same order; the publish gate is only asked where a model is closed."""
    live = [item for item in page if not item.retired]
    closed = any(item.kind is ObjectKind.MODEL and not item.published for item in live)
    if not closed and not any(item.kind is ObjectKind.SUPPLY for item in live):
        return [Presented(item) for item in page]
    catalog = await desk.view.newest()
    around = await desk.around(catalog) if closed else Surroundings(verified=await desk.verified())
    presented = []
    for item in page:
        evidence, reasons = "", tuple[str, ...]()
        if not item.retired and item.kind is ObjectKind.SUPPLY and item.id in catalog.supplies:
            evidence = evidence_words(catalog.supplies[item.id], around.verified.get(item.id))
        if not item.retired and item.kind is ObjectKind.MODEL and not item.published and item.id in catalog.models:
            reasons = standing_now(item, catalog, around).words()
        presented.append(Presented(item, evidence, reasons))
    return presented

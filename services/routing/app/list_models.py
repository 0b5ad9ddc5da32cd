"""The models that a tenant may use, with what they cost and what may be lost (OAI-2, TIER-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.routing.app.catalog_desk import CatalogDesk
from services.routing.domain.admission import may_use
from services.routing.domain.catalog import Model
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.disclosure import Loss, PriceRange, losses, price_ranges


@dataclass(frozen=True, slots=True)
class Listed:
    """A Public Model as its callers may see it. `declared_at` is None for one whose history is not known."""

    model: Model
    prices: Sequence[PriceRange]
    losses: Sequence[Loss]
    declared_at: datetime | None


async def list_models(desk: CatalogDesk, tenant: str) -> list[Listed]:
    """Published models that the tenant may use, by id."""
    catalog = await desk.view.newest()
    declared = await desk.store.first_declared(ObjectKind.MODEL)
    return [
        Listed(model, price_ranges(catalog, model), losses(catalog, model), declared.get(model.id))
        for _, model in sorted(catalog.models.items())
        if model.published and may_use(catalog, tenant, model)
    ]

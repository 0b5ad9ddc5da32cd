"""What applying a file would change; changes nothing."""

from collections.abc import Sequence

from services.routing.app.apply_catalog import plan_catalog
from services.routing.app.catalog_desk import CatalogDesk
from services.routing.domain.catalog_diff import Change


async def diff_catalog(desk: CatalogDesk, text: str, merge: bool) -> Sequence[Change]:
    """Every change. Fault `catalog_invalid` as for applying."""
    _, plan = await plan_catalog(desk, text, merge)
    return plan.changes

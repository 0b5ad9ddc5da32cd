"""An alert of whoever stands above routing: alerts live here, for all contexts (OPS-6)."""

from services.routing.app.desk import Desk, alerts_of
from services.routing.app.tell_findings import Told


async def raise_alert(desk: Desk, told: Told) -> None:
    """Keep it. While one of the same kind, subject and sort is open, that one counts and takes the newest words."""
    await desk.store.raise_alerts(alerts_of(desk, (told.draft,), told.link, suffix=told.sort))

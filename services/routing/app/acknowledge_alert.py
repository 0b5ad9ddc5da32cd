"""An operator has seen an alert: from now on the same cause raises a new one (OPS-6)."""

from libs.faults.fault import Fault
from services.routing.app.desk import Desk
from services.routing.ports.alerts import Alert


async def acknowledge_alert(desk: Desk, alert_id: str) -> Alert:
    """The alert after it; the first acknowledgement stands. Fault `not_found`."""
    alert = await desk.store.acknowledge(alert_id, desk.now())
    if alert is None:
        raise Fault.of("not_found", f"alert {alert_id!r} does not exist")
    return alert

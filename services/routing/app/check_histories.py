"""Health's own running check as durable alerts: alerts live here, and nothing calls upwards (HLT-12)."""

from services.routing.app.desk import Desk
from services.routing.app.tell_findings import Teller, Told
from services.routing.domain.decision import AlertDraft

LINK = "/v1/operator/health"


class CheckHistories:
    """Asks health which histories do not fold to their state."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._teller = Teller(desk)

    async def __call__(self) -> None:
        """Ask once."""
        breaches = await self._desk.health.breaches()
        await self._teller.tell([_told(name, text) for name, text in sorted(breaches.items())])


def _told(name: str, text: str) -> Told:
    message = f"The history of {name} does not give its state: {text}."
    return Told(AlertDraft("invariant_violated", "critical", name, message, cause="health history"), "history", LINK)

"""The running proof that the ledger of budgets adds up (COST-11): who keeps it knows no alerts, so routing asks."""

from services.routing.app.desk import Desk
from services.routing.app.tell_findings import Teller, Told
from services.routing.domain.decision import AlertDraft

LINK = "/v1/operator/budgets:check"


class CheckBudgets:
    """Asks, and tells each budget whose figures contradict its entries or its Holds."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._teller = Teller(desk)

    async def __call__(self) -> None:
        """Once."""
        found = await self._desk.funds.mismatches()
        drafts = [AlertDraft("ledger_mismatch", "critical", budget, what, cause=what) for budget, what in found]
        await self._teller.tell([Told(draft, draft.cause, LINK) for draft in drafts])

"""Holds the ledger to account while it is at work (COST-11)."""

import logging

from libs.telemetry import metrics, names
from services.cost_quote.ports import Budgets

log = logging.getLogger(__name__)


class CheckLedger:
    """Tells every contradiction in the log, and their number as a metric that an alert rule watches."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets

    async def __call__(self) -> None:
        """One round."""
        mismatches = await self._budgets.mismatches()
        for mismatch in mismatches:
            log.error("ledger_mismatch: budget %s: %s", mismatch.budget_id, mismatch.what)
        metrics.PROCESS.gauge(names.LEDGER_MISMATCHES).set(len(mismatches))

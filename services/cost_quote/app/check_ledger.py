"""Holds the ledger to account while it is at work (COST-11)."""

import logging
from datetime import timedelta

from libs.faults.fault import Fault
from libs.telemetry import metrics, names
from services.cost_quote.ports import Budgets

REREAD = timedelta(days=1)
"""What was proven so long ago is proven again from its first entry, a budget each round: a hand in the past leaves no
trace in what comes after it."""

log = logging.getLogger(__name__)


class CheckLedger:
    """Tells every contradiction in the log, and their number as a metric that an alert rule watches."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets

    async def __call__(self) -> None:
        """One round."""
        mismatches = await self._budgets.mismatches()
        try:
            later = await self._budgets.reread(REREAD)
        except Fault as fault:  # it may be too much for one look; what came since is proven all the same
            log.warning("a budget could not be read from its first entry: %s", fault)
        else:
            mismatches = mismatches if later is None else later
        for mismatch in mismatches:
            log.error("ledger_mismatch: budget %s: %s", mismatch.budget_id, mismatch.what)
        metrics.PROCESS.gauge(names.LEDGER_MISMATCHES).set(len(mismatches))

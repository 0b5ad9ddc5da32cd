"""Plans of Runs, read once: a document never changes, and reading one costs more than deciding by it."""

from collections import OrderedDict

from services.runs.domain.plan import Plan
from services.runs.domain.reading.production import read_plan, single_plan
from services.runs.domain.run import Run

KEPT = 1_000


class Plans:
    """The Plan of each Run."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Plan] = OrderedDict()

    def of(self, run: Run) -> Plan:
        """Its Plan. ValueError for a production that no longer reads, which a check at creation rules out."""
        if run.production is None:
            order = run.order
            return single_plan(
                order.model,
                order.input,
                degradation=order.degradation,
                billing_mode=order.billing_mode,
                priority=order.priority,
                deadline=order.deadline,
                budget_id=run.budget_id,
            )
        known = self._known.get(run.id)
        if known is None:
            known, faults = read_plan(run.production)
            if known is None:
                raise ValueError(f"the production of run {run.id} cannot be read: {faults[:3]}")
            self._known[run.id] = known
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known

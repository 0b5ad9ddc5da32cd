"""Minutes of reviewers, held before a person is asked and booked when they have decided (COST-10)."""

import logging
from collections.abc import Sequence

from libs.faults.fault import Fault
from libs.kernel.world import World
from services.runs.app.check_change import passing
from services.runs.domain import asking, minutes
from services.runs.domain.alerting import hard_limit, run_link, soft_limit
from services.runs.domain.engine import Act, Deed
from services.runs.domain.plan import Plan
from services.runs.domain.run import Draft, Run
from services.runs.domain.task_view import HeldMinutes, Refused, Settled
from services.runs.ports import Alerts, Budgets

log = logging.getLogger(__name__)


class Minutes:
    """Does the acts for questions. A Fault that another moment mends is raised: the act is done again."""

    def __init__(self, budgets: Budgets, alerts: Alerts, world: World) -> None:
        self._budgets = budgets
        self._alerts = alerts
        self._world = world

    async def do(self, plan: Plan, run: Run, act: Act) -> Sequence[Draft]:
        """The events that the act ends as."""
        if act.deed is Deed.BOOK:
            return await self._book(run, act.review)
        return await self._reserve(plan, run, act)

    async def _reserve(self, plan: Plan, run: Run, act: Act) -> Sequence[Draft]:
        due = run.due.get(act.review)
        if due is None:
            return ()
        try:
            answer = await self._ask(plan, run, act, due.minutes)
        except Fault as fault:
            if passing(fault):
                raise
            if fault.code == "conflict":  # it was closed since: the question is over by now
                return ()
            answer = Refused(run.budget_id, "budget", "review_minutes", f"no minutes can be held: {fault.message}")
        now = self._world.clock.now()
        if isinstance(answer, HeldMinutes):
            await self._tell_soft(run, answer.soft)
            return minutes.held(run, act.review, answer, now)
        root = asking.limit_root(plan, act.node, answer.budget_id, minutes=True)
        if asking.open_for(run, "budget", "", root) is None:
            await self._alerts.tell(hard_limit(answer.budget_id, answer.message, run.id), run_link(run.id))
        return minutes.refused(plan, run, act.review, answer, now)

    async def _ask(self, plan: Plan, run: Run, act: Act, count: int) -> HeldMinutes | Refused:
        assert plan.budget is not None, "where nothing is counted no question is due"
        budget_id = f"{run.budget_id}/{act.node}"
        await self._budgets.make(run.budget_id, run.budget_parent or plan.budget.parent, run.tenant, plan)
        spec = plan.spec(act.node)
        await self._budgets.make_node(budget_id, run.budget_id, run.tenant, spec, plan.budget.currency)
        subject = f"{run.id}/{act.node}"
        return await self._budgets.hold_minutes(minutes.hold_id(act.review), budget_id, count, subject)

    async def _book(self, run: Run, review_id: str) -> Sequence[Draft]:
        kept = run.reserved.get(review_id)
        if kept is None or kept.used is None:
            return ()
        why = f"the review of {kept.node} was decided" if kept.used else f"the review of {kept.node} is not needed"
        try:
            settled = await self._budgets.settle_minutes(kept.hold_id, kept.used, why)
        except Fault as fault:
            if fault.code != "conflict":
                raise
            # It ended in another way: nothing is held any more, and asking again would never end.
            log.warning("hold_ended_before", extra={"run_id": run.id, "hold_id": kept.hold_id})
            settled = Settled()
        await self._tell_soft(run, settled.soft)
        return minutes.settled(run, review_id, settled.soft)

    async def _tell_soft(self, run: Run, reached: Sequence[str]) -> None:
        for budget_id in reached:
            await self._alerts.tell(soft_limit(budget_id, run.id), run_link(run.id))

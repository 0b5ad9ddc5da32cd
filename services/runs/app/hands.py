"""What is done outside for a node, and the events that it ends as. No transaction is open meanwhile.

A Fault that another moment mends ends as no event: the next tick does the same act again, under the same ids.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.kernel.world import World
from libs.telemetry import names
from libs.telemetry.spans import carried, continued
from services.runs.app.check_change import passing
from services.runs.app.examine_artifacts import Inspector
from services.runs.app.hold_minutes import Minutes
from services.runs.domain import asking, event_data, hearing, memos
from services.runs.domain.alerting import beyond, hard_limit, run_link, soft_limit
from services.runs.domain.engine import Act, Deed
from services.runs.domain.money import attempts_that_fit, order_of
from services.runs.domain.plan import Plan
from services.runs.domain.run import Draft, Failure, Node, Run
from services.runs.domain.task_view import Finding, Held, Refused, Settled, TaskView, Unpriced
from services.runs.ports import Alerts, Budgets, Routing, Runs

Drafts = Sequence[Draft]
T = TypeVar("T")

log = logging.getLogger(__name__)


class Hands:
    """Does acts. `tasks`: what routing told of the Tasks that are followed."""

    def __init__(
        self, runs: Runs, routing: Routing, budgets: Budgets, checks: Inspector, alerts: Alerts, world: World
    ) -> None:
        self._runs = runs
        self._routing = routing
        self._budgets = budgets
        self._checks = checks
        self._alerts = alerts
        self._world = world
        self._minutes = Minutes(budgets, alerts, world)
        self._deeds: Mapping[Deed, Callable[[Plan, Run, Node, TaskView | None], Awaitable[Drafts]]] = {
            Deed.HOLD: self._hold,
            Deed.SUBMIT: self._submit,
            Deed.FOLLOW: self._follow,
            Deed.CANCEL: self._cancel,
            Deed.WITHDRAW: self._withdraw,
            Deed.SETTLE: self._settle,
            Deed.EXAMINE: self._examine,
            Deed.PAUSE: self._pause,
            Deed.UNPAUSE: self._unpause,
            Deed.RAISE: self._raise,
        }

    async def do(self, plan: Plan, run: Run, act: Act, tasks: Mapping[str, TaskView]) -> Drafts:
        """The events that the act ends as; none if it is to be tried again."""
        node = run.nodes[act.node]
        try:
            with _traced(run, act):
                if act.review:
                    return await self._minutes.do(plan, run, act)
                return await self._deeds[act.deed](plan, run, node, tasks.get(node.task_id))
        except Fault as fault:
            log.warning("run_call_failed", extra={"run_id": run.id, "node": node.id, "code": fault.code})
            return ()

    async def _submit(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        try:
            await self._routing.submit(plan, run, node)
        except Fault as fault:
            if passing(fault):
                raise
            return hearing.refused(plan, run, node, failure_of(fault), self._world.clock.now())
        return hearing.submitted(run, node)

    async def _follow(self, plan: Plan, run: Run, node: Node, task: TaskView | None) -> Drafts:
        if task is None:
            log.error("run_without_task", extra={"run_id": run.id, "task_id": node.task_id})
            return ()
        findings: Sequence[Finding] = ()
        if task.state == "succeeded" and not plan.single:
            findings = await self._checks.findings(plan, run, node, task.artifacts)
        return hearing.followed(plan, run, node, task, findings, self._world.clock.now())

    async def _cancel(self, plan: Plan, run: Run, node: Node, task: TaskView | None) -> Drafts:
        if task is None or task.state not in hearing.TASK_ENDS:
            await self._routing.cancel(node.task_id)
        return ()

    async def _withdraw(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        """A cancel came before the hand-over was on record.

        Whoever died meanwhile may have handed the Task over; one that stands still may yet do it. So a Task that
        routing does not know is handed over as cancelled: whoever comes later finds it ended.
        """
        task = (await self._routing.tasks([node.task_id])).get(node.task_id)
        if task is None:
            await self._routing.withdraw(plan, run, node)
            return ()
        if task.state == "cancelled" and not task.attempts:
            await self._let_go(plan, node, "it was withdrawn")
            return hearing.withdrawn(plan, run, node, self._world.clock.now())
        drafts = hearing.submitted(run, node)
        await self._quietly(run, self._routing.cancel, node.task_id)
        return drafts

    async def _hold(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        now = self._world.clock.now
        if drafts := await self._remembered(plan, run, node):
            return drafts
        try:
            estimate = await self._routing.validate(run.tenant, order_of(plan, run, node), node.supply, run.id)
        except Fault as fault:
            if passing(fault):
                raise
            await self._let_go(plan, node, fault.code)
            return hearing.refused(plan, run, node, failure_of(fault), now())
        if estimate.passing:
            return ()
        if estimate.worst is None:
            await self._let_go(plan, node, "nobody can say its price")
            return hearing.held(plan, run, node, node.task_id, Unpriced(estimate.reason), now())
        attempts, cost = attempts_that_fit(plan, node, estimate)
        try:
            answer = await self._reserve(plan, run, node, cost, attempts)
        except Fault as fault:
            if passing(fault):
                raise
            if fault.code != "conflict":  # no rate, no such budget: somebody has to look
                never = Refused(run.budget_id, "budget", "cost", f"no money can be held: {fault.message}")
                return await self._refused(plan, run, node, never)
            return hearing.begun_anew(node)  # it was given back: that id never holds anything again
        if isinstance(answer, Refused):
            return await self._refused(plan, run, node, answer)
        drafts = hearing.held(plan, run, node, node.task_id, answer, now())
        await self._tell_soft(run, answer.soft)
        return drafts

    async def _remembered(self, plan: Plan, run: Run, node: Node) -> Drafts:
        """What another Run has made of the same input, if it is still good: its files are there and pass the checks.

        Looked up only here, before any Hold: what is paid is handed over under a Hold alone, so nobody has the Task.
        """
        if plan.single or not plan.spec(node.id).memo:
            return ()
        memo = await self._runs.memo(run.tenant, node.input_hash, run.id)
        if memo is None:
            return ()
        findings = await self._checks.findings(plan, run, node, memo.result.artifacts)
        if any(finding.failed for finding in findings):
            return ()
        # A Hold that was asked for before a crash goes back, and one that is under way finds its id closed.
        await self._budgets.settle(node.task_id, None, 0, f"run {memo.run_id} has made it already")
        return memos.reused(node, memo)

    async def _reserve(self, plan: Plan, run: Run, node: Node, cost: Money, attempts: int) -> Held | Refused:
        budget_id = run.budget_id
        if plan.budget is not None and not plan.single:
            spec = plan.spec(node.id)
            budget_id = f"{run.budget_id}/{node.id}"
            await self._budgets.make(run.budget_id, run.budget_parent or plan.budget.parent, run.tenant, plan)
            await self._budgets.make_node(budget_id, run.budget_id, run.tenant, spec, plan.budget.currency)
        try:
            return await self._budgets.hold(node.task_id, budget_id, cost, attempts, f"{run.id}/{node.id}")
        except Fault as fault:
            if fault.code != "already_exists":
                raise
        # Asked for before a crash, or by another replica a moment ago, at another price. It is the Hold of this try as
        # it stands: given back here, it could be missing under who has it on record by now. Routing adds what it lacks.
        return await self._budgets.standing(node.task_id, budget_id)

    async def _let_go(self, plan: Plan, node: Node, reason: str) -> None:
        """A Hold that is not on record may have been taken by who died before it could record it, or may yet be taken
        by who stands still: that id never holds anything from now on."""
        if plan.budget is not None and node.hold is None:
            await self._budgets.settle(node.task_id, None, 0, reason)

    async def _refused(self, plan: Plan, run: Run, node: Node, refusal: Refused) -> Drafts:
        root = asking.limit_root(plan, node.id, refusal.budget_id)
        if not refusal.may_free and asking.open_for(run, "budget", "", root) is None:
            alert = hard_limit(refusal.budget_id, refusal.message, run.id)
            await self._alerts.tell(alert, run_link(run.id))
        return hearing.held(plan, run, node, node.task_id, refusal, self._world.clock.now())

    async def _settle(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        hold = node.hold
        assert hold is not None, "only what is held is settled"
        cost = node.cost
        if cost is not None and hold.cost_before is not None:
            cost = cost - hold.cost_before
        used = node.attempts_made - hold.attempts_before
        reason = f"{node.id} is {node.state}"
        try:
            settled = await self._budgets.settle(hold.id, cost, used, reason)
        except Fault as fault:
            if fault.code != "conflict":
                raise
            log.warning("hold_ended_before", extra={"run_id": run.id, "hold_id": hold.id})
            settled = await self._corrected(hold.id, cost, used, reason)
        for alert in beyond(run, node, hold, settled):
            await self._alerts.tell(alert, run_link(run.id))
        await self._tell_soft(run, settled.soft)
        return hearing.settled(run, node, cost, settled.soft)

    async def _corrected(self, hold_id: str, cost: Money | None, attempts: int, reason: str) -> Settled:
        """It ended in another way: nothing is held, and asking again would never end. What was paid is booked."""
        if cost is None and not attempts:
            return Settled()
        try:
            return await self._budgets.settle(hold_id, cost, attempts, reason, correct=True)
        except Fault as fault:
            if fault.code != "conflict":
                raise
            return Settled()

    async def _examine(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        findings = await self._checks.findings(plan, run, node)
        return hearing.examined(plan, run, node, findings, self._world.clock.now())

    async def _pause(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        await self._routing.pause([node.task_id], True)
        return ()

    async def _unpause(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        await self._routing.pause([node.task_id], False)
        return ()

    async def _raise(self, plan: Plan, run: Run, node: Node, _task: TaskView | None) -> Drafts:
        """Tell the ledger what a person decided; the decision's id makes a repeat harmless."""
        asked = next(asked for asked in run.raising if asked.node == node.id)
        limit = event_data.money(asked.limit) if asked.dimension == "cost" else asked.limit[asked.dimension]
        assert limit is not None, "who raises a limit says to what"
        try:
            said = f"{asked.who}: {asked.comment}"
            await self._budgets.raise_limit(asked.budget_id, asked.dimension, limit, said, asked.review_id)
        except Fault as fault:
            if passing(fault):
                raise
            if fault.code != "conflict":  # or it was told before, and somebody has changed another limit since
                return hearing.not_raised(asked, fault.message)
        return hearing.raised(asked)

    async def _tell_soft(self, run: Run, reached: Sequence[str]) -> None:
        """The ledger names each budget once, and so are operators told."""
        for budget_id in reached:
            await self._alerts.tell(soft_limit(budget_id, run.id), run_link(run.id))

    async def _quietly(self, run: Run, call: Callable[[T], Awaitable[None]], argument: T) -> None:
        """What is only an accelerator must not undo what was done."""
        try:
            await call(argument)
        except Fault as fault:
            log.warning("run_call_failed", extra={"run_id": run.id, "code": fault.code})


def _traced(run: Run, act: Act) -> carried | continued:
    """In the trace that created the Run. Following is done at every look: it gets no span of its own."""
    if act.deed is Deed.FOLLOW:
        return carried(run.traceparent)
    facts = {names.RUN_ID: run.id, names.NODE: act.node, names.ACT: act.deed.value, names.TENANT: run.tenant}
    return continued(run.traceparent, names.SPAN_RUN_ADVANCE, facts)


def failure_of(fault: Fault) -> Failure:
    """A Fault as it is stored."""
    return Failure(fault.category.value, fault.scope.value, fault.retryable, fault.code, fault.message)

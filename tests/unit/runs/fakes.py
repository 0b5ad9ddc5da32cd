"""Stand-ins for what runs calls."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.kernel.money import Money
from services.runs.domain.alerting import Alert
from services.runs.domain.judging import Facts
from services.runs.domain.money import order_of
from services.runs.domain.plan import Plan, Spec
from services.runs.domain.run import Artifact, Failure, Node, Order, Run
from services.runs.domain.task_view import (
    AttemptView,
    Estimate,
    Held,
    HeldMinutes,
    Level,
    Refused,
    Settled,
    TaskView,
)

PRICE = Money("CNY", Decimal("1.00"))
OUT_OF_ORDER = Failure("supply", "supply", True, "provider_error", "the provider is out of order")
REFUSED = Failure("content", "request", False, "content_rejected", "the provider refused the prompt")
DOUBTED = Failure("unknown", "attempt", False, "submission_unresolved", "nobody can tell whether it was taken")


@dataclass
class FakeRouting:
    """Implements `ports.Routing`: Tasks that the test writes, or that end by themselves by what it scripted."""

    views: dict[str, TaskView] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    orders: dict[str, Order] = field(default_factory=dict)
    """By node: the order that was handed over last."""
    supplies: dict[str, str] = field(default_factory=dict)
    """By node: the Supply that it was pinned to."""
    under_way: dict[str, tuple[Node, Order]] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    answering: bool = False
    """Whether every Task that is handed over ends at once."""
    script: dict[str, list[Failure]] = field(default_factory=dict)
    """By node: the failures with which its next Tasks end."""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By node: what its Tasks tell beside their files."""
    fault: Fault | None = None
    """What every submission raises, if anything."""
    asked: list[Order] = field(default_factory=list)
    """What was only asked about."""
    away: Fault | None = None
    """What every question about an order raises, if anything."""
    prices: list[Money] = field(default_factory=list)
    """What one attempt costs the next times that somebody asks; then, and without any, one unit."""
    unpriced: set[str] = field(default_factory=set)
    validated: list[tuple[Order, str]] = field(default_factory=list)
    """Every (order, Supply) that was asked about."""
    during_submit: Callable[[], Awaitable[None]] | None = None
    """What happens while a submission is on its way."""

    async def validate(self, tenant: str, order: Order, supply: str = "", run_id: str = "") -> Estimate:
        """Accept what the model's name does not forbid; two attempts at one unit each. Supplies begin with `a/` or
        `b/`, and `b/small` makes no more than 10 s."""
        self.asked.append(order)
        self.validated.append((order, supply))
        if self.away is not None:
            raise self.away
        if supply and supply[:2] not in ("a/", "b/"):
            raise Fault.invalid(("/options/supply_id", f"{supply!r} is not bound to model; name one of a/one, b/two"))
        if supply == "b/small" and order.input.get("duration_s", 0) > 10:
            return Estimate(None, 2, "no supply serves this request: b/small at SEL-5 (needs 12 s, admits 10)")
        if order.model == "unknown":
            raise Fault.of("model_not_published", "no such model")
        if order.input.get("duration_s") == 99:
            raise Fault.invalid(
                ("/input/duration_s", "needs 99 s, the model admits 15 s"), ("/input/prompt", "is required")
            )
        if order.model in self.unpriced:
            return Estimate(None, 2, f"no supply of {order.model} has a price")
        return Estimate((self.prices.pop(0) if self.prices else PRICE) * 2, 2)

    async def submit(self, plan: Plan, run: Run, node: Node) -> None:
        """Note the Task; the same one twice is one."""
        if self.fault is not None:
            raise self.fault
        self.submitted.append(node.task_id)
        self.orders[node.id] = order = order_of(plan, run, node)
        self.supplies[node.id] = node.supply
        self.under_way[node.task_id] = (node, order)
        if self.answering and node.task_id not in self.views:
            self.views[node.task_id] = self._ended(node, order)
        if self.during_submit is not None:
            await self.during_submit()

    def answer_all(self) -> None:
        """End every Task that is under way."""
        for node, order in self.under_way.values():
            self.views.setdefault(node.task_id, self._ended(node, order))

    def end_cancelled(self) -> None:
        """End every Task that was asked to."""
        for task_id in self.cancelled:
            self.views[task_id] = TaskView(task_id, 9, "cancelled", None)

    def _ended(self, node: Node, order: Order) -> TaskView:
        failures = self.script.get(node.id, [])
        failure = failures.pop(0) if failures else None
        supply = node.supply or "a/one"
        cost = None if failure is not None else PRICE
        state = "succeeded" if failure is None else "unresolved" if failure == DOUBTED else "failed"
        attempt = AttemptView(f"{node.task_id}-1", 1, supply, "a", state, PRICE, cost, failure)
        if failure is not None:
            return TaskView(node.task_id, 3, "failed", None, attempts=(attempt,), failure=failure)
        made = Artifact(digest([order.model, order.input, supply]), "image/png", 100)
        output = self.outputs.get(node.id, {})
        return TaskView(node.task_id, 3, "succeeded", PRICE, attempts=(attempt,), artifacts=(made,), output=output)

    async def withdraw(self, plan: Plan, run: Run, node: Node) -> None:
        """A Task that ends unsent, unless there is one."""
        self.withdrawn.append(node.task_id)
        self.views.setdefault(node.task_id, TaskView(node.task_id, 2, "cancelled", None))

    async def tasks(self, task_ids: Sequence[str]) -> Mapping[str, TaskView]:
        """Those that are known."""
        return {task_id: self.views[task_id] for task_id in task_ids if task_id in self.views}

    async def waiting_reason(self, task_id: str) -> str:
        """The reason of this moment, or the fault."""
        if self.fault is not None:
            raise self.fault
        return self.reasons.get(task_id, "")

    async def cancel(self, task_id: str) -> None:
        """Note the wish."""
        self.cancelled.append(task_id)

    async def pause(self, task_ids: Sequence[str], paused: bool) -> None:
        """Note what is held."""
        self.paused = self.paused | set(task_ids) if paused else self.paused - set(task_ids)


@dataclass
class FakeBudgets:
    """Implements `ports.Budgets`: an account for each production, and one for each node that has a limit."""

    above: dict[str, str] = field(default_factory=dict)
    """Production -> the level above it that several share."""
    read: list[str] = field(default_factory=list)
    """Levels that were looked at, in order."""
    unread: Fault | None = None
    """What every look at a level raises, if anything."""
    asked: list[str] = field(default_factory=list)
    """Holds of money that were asked for, in order."""
    hard: dict[str, Decimal] = field(default_factory=dict)
    soft: dict[str, Decimal] = field(default_factory=dict)
    held: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    spent: dict[str, Decimal] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    """Holds that have ended."""
    booked: dict[str, Decimal] = field(default_factory=dict)
    """By Hold that has ended: what it really cost."""
    closed: set[str] = field(default_factory=set)
    """Holds that were released before anybody took them."""
    away: Fault | None = None
    """What every settlement raises, if anything."""
    lost: bool = False
    """Every Hold has been given back by the time it is settled: only a correction books what it cost."""
    deaf: Fault | None = None
    """What every change of a limit raises, if anything."""
    told_soft: set[str] = field(default_factory=set)
    short: Fault | None = None
    """What every Hold of minutes raises, if anything."""
    past_soft: tuple[str, ...] = ()
    """Levels above that others have brought to their soft limit."""
    most: dict[tuple[str, str], int] = field(default_factory=dict)
    """By level and dimension, `attempts` or `review_minutes`: the hard limit."""
    soft_minutes: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By Hold of money: its budget, and the attempts that it reserves or has used."""
    minutes: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By Hold of minutes: its budget, and the minutes that it reserves or has booked."""
    looked: set[str] = field(default_factory=set)
    """Holds of minutes that have ended."""
    late: set[str] = field(default_factory=set)
    """Levels whose deadline is over."""
    raised: list[tuple[str, Decimal | int, str]] = field(default_factory=list)
    """Every (id, limit, reason) that was told."""

    foreign: set[str] = field(default_factory=set)

    async def usable(self, budget_id: str, tenant: str) -> bool:
        """All but those of others."""
        return budget_id not in self.foreign

    async def make(self, budget_id: str, parent: str, tenant: str, plan: Plan) -> None:
        """Once."""
        assert plan.budget is not None
        if parent:
            self.above[budget_id] = parent
        if plan.budget.cost is not None:
            self.hard.setdefault(budget_id, plan.budget.cost)
        if plan.budget.soft is not None:
            self.soft.setdefault(budget_id, plan.budget.soft)
        for dimension in ("attempts", "review_minutes"):
            if most := getattr(plan.budget, dimension):
                self.most.setdefault((budget_id, dimension), most)
        if plan.budget.soft_review_minutes:
            self.soft_minutes.setdefault(budget_id, plan.budget.soft_review_minutes)

    async def make_node(self, budget_id: str, parent: str, tenant: str, spec: Spec, currency: str) -> None:
        """Once, for a node with a limit."""
        if spec.budget.cost is not None:
            self.hard.setdefault(budget_id, spec.budget.cost)

    async def hold(self, hold_id: str, budget_id: str, cost: Money, attempts: int, subject: str) -> Held | Refused:
        """All or nothing."""
        root = budget_id.partition("/")[0]
        self.asked.append(hold_id)
        if hold_id in self.closed:
            raise Fault.of("conflict", f"hold {hold_id} was released before it was taken")
        if hold_id in self.held and self.held[hold_id][1] != cost.amount:
            raise Fault.of("already_exists", f"hold {hold_id} is of another amount")
        if hold_id not in self.held:
            shared = self.above.get(root, "")
            for at, level in ((budget_id, "node"), (root, "episode"), (shared, "project")):
                taken = self._taken(at)
                if at in self.hard and taken + cost.amount > self.hard[at]:
                    said = f"{at}: {taken} of {self.hard[at]} are taken"
                    return Refused(at, level, "cost", said, {"cost": cost.amount, "attempts": Decimal(attempts)})
            if refused := self._full(self.attempts, budget_id, "attempts", attempts):
                return refused
            self.held[hold_id] = (budget_id, cost.amount)
            self.attempts[hold_id] = (budget_id, attempts)
        return Held(budget_id, cost, attempts, self._newly_soft(root), self._past_soft(root))

    async def standing(self, hold_id: str, budget_id: str) -> Held:
        """As it was taken."""
        if hold_id in self.closed | self.over:
            raise Fault.of("conflict", f"hold {hold_id} has ended")
        return Held(budget_id, Money("CNY", self.held[hold_id][1]), self.attempts[hold_id][1])

    async def settle(
        self, hold_id: str, cost: Money | None, attempts: int, reason: str, correct: bool = False
    ) -> Settled:
        """Once; an id that is not known never holds anything."""
        if self.away is not None:
            raise self.away
        if self.lost and not correct:
            raise Fault.of("conflict", f"hold {hold_id} was released")
        if hold_id not in self.held:
            self.closed.add(hold_id)
            return Settled()
        root = self.held[hold_id][0].partition("/")[0]
        if hold_id not in self.over:
            self.over.add(hold_id)
            self.booked[hold_id] = cost.amount if cost is not None else Decimal(0)
            self.attempts[hold_id] = (self.held[hold_id][0], attempts)
            self.spent[root] = self.spent.get(root, Decimal(0)) + self.booked[hold_id]
        held = self.held[hold_id][1]
        more = cost.amount - held if cost is not None else Decimal(0)
        return Settled(self._newly_soft(root), Money(cost.currency, more) if cost is not None and more > 0 else None)

    async def hold_minutes(self, hold_id: str, budget_id: str, minutes: int, subject: str) -> HeldMinutes | Refused:
        """All or nothing."""
        if self.short is not None:
            raise self.short
        if hold_id in self.closed:
            raise Fault.of("conflict", f"hold {hold_id} was released before it was taken")
        if hold_id not in self.minutes:
            if refused := self._full(self.minutes, budget_id, "review_minutes", minutes):
                return refused
            self.minutes[hold_id] = (budget_id, minutes)
        root = budget_id.partition("/")[0]
        return HeldMinutes(budget_id, minutes, self._newly_soft(root), self._past_soft(root))

    async def settle_minutes(self, hold_id: str, minutes: int, reason: str) -> Settled:
        """Once; an id that is not known never holds anything."""
        if self.away is not None:
            raise self.away
        if hold_id not in self.minutes:
            self.closed.add(hold_id)
            return Settled()
        budget_id, _ = self.minutes[hold_id]
        if hold_id not in self.looked:
            self.looked.add(hold_id)
            self.minutes[hold_id] = (budget_id, minutes)
        return Settled(self._newly_soft(budget_id.partition("/")[0]))

    async def level(self, budget_id: str) -> Level:
        """In the only currency; nothing warns."""
        self.read.append(budget_id)
        if self.unread is not None:
            raise self.unread
        counted = {"attempts": self.attempts, "review_minutes": self.minutes}
        used = {name: Decimal(_counted(holds, budget_id)) for name, holds in counted.items()}
        hard = {name: Decimal(most) for (at, name), most in self.most.items() if at == budget_id}
        hard["cost"] = self.hard.get(budget_id, Decimal(0))
        deadline = datetime(2020, 1, 1, tzinfo=UTC) if budget_id in self.late else None
        return Level("CNY", {"cost": self._taken(budget_id), **used}, hard=hard, deadline=deadline)

    async def raise_limit(
        self, budget_id: str, dimension: str, limit: Money | int, reason: str, request_id: str
    ) -> None:
        """The new limit of one that was made, once; one that is higher stays."""
        if self.deaf is not None:
            raise self.deaf
        self.raised.append((request_id, limit.amount if isinstance(limit, Money) else limit, reason))
        if isinstance(limit, int):
            self.most[budget_id, dimension] = max(limit, self.most.get((budget_id, dimension), 0))
            return
        if budget_id not in self.hard:
            raise Fault.of("not_found", f"budget {budget_id} does not exist")
        self.hard[budget_id] = max(limit.amount, self.hard[budget_id])

    def _full(self, counted: dict[str, tuple[str, int]], budget_id: str, dimension: str, more: int) -> Refused | None:
        for at, level in ((budget_id.partition("/")[0], "episode"), (budget_id, "node")):
            asked = {dimension: Decimal(more)}
            if at in self.late:
                return Refused(at, level, "deadline", f"{at} takes no Hold any more", asked)
            taken, most = _counted(counted, at), self.most.get((at, dimension), 0)
            if most and taken + more > most:
                return Refused(at, level, dimension, f"{at}: {taken} of {most} {dimension} are taken", asked)
        return None

    def _taken(self, level: str) -> Decimal:
        below = (item for item in self.held.items() if level in self._branch(item[1][0]))
        return sum((self.booked.get(hold, amount) for hold, (_, amount) in below), Decimal(0))

    def _branch(self, budget_id: str) -> tuple[str, str, str]:
        root = budget_id.partition("/")[0]
        return budget_id, root, self.above.get(root, "")

    def _past_soft(self, root: str) -> tuple[str, ...]:
        money = root in self.soft and self._taken(root) >= self.soft[root]
        minutes = root in self.soft_minutes and _counted(self.minutes, root) >= self.soft_minutes[root]
        return (*self.past_soft, root) if money or minutes else self.past_soft

    def _newly_soft(self, root: str) -> tuple[str, ...]:
        if root in self._past_soft(root) and root not in self.told_soft:
            self.told_soft.add(root)
            return (root,)
        return ()


def _counted(counted: dict[str, tuple[str, int]], level: str) -> int:
    """What all Holds at or below a level reserve or have used."""
    return sum(count for at, count in counted.values() if level in (at, at.partition("/")[0]))


@dataclass
class FakeExaminer:
    """Implements `ports.Examiner`: everything is a sound picture, but for what the test says."""

    facts: dict[str, Facts] = field(default_factory=dict)
    refusal: Fault | None = None
    """What everybody answers who is to read something, if anything."""
    away: Fault | None = None
    """What every look raises, if anything."""

    async def examine(self, tenant: str, artifact: Artifact, readers: Collection[str] = ()) -> Facts:
        """What was said of it."""
        if self.away is not None:
            raise self.away
        if readers and self.refusal is not None:
            raise self.refusal
        sound = Facts(artifact.sha256, artifact.media_type, 100, width=640, height=360)
        return self.facts.get(artifact.sha256, sound)


@dataclass
class FakeAlerts:
    """Implements `ports.Alerts`; as `ports.AlertBook` it may be away."""

    told: list[tuple[str, str]] = field(default_factory=list)
    """Kind and subject of each."""
    alerts: list[Alert] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    away: Fault | None = None
    """What keeping one raises, if anything."""

    async def tell(self, alert: Alert, link: str) -> None:
        """Note it."""
        self.told.append((alert.kind, alert.subject))
        self.alerts.append(alert)
        self.links.append(link)

    async def keep(self, alert: Alert, link: str) -> None:
        """Note it, or be away."""
        if self.away is not None:
            raise self.away
        await self.tell(alert, link)

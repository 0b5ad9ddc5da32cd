"""Stand-ins for what runs calls."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.canonical import digest
from libs.kernel.money import Money
from services.runs.domain.alerting import Alert
from services.runs.domain.judging import Facts
from services.runs.domain.money import order_of
from services.runs.domain.plan import Plan
from services.runs.domain.run import Artifact, Failure, Node, Order, Run
from services.runs.domain.task_view import (
    AttemptView,
    Estimate,
    Quota,
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
    quotas: dict[str, Quota] = field(default_factory=dict)
    """By tenant: the budget of its period."""
    mute: Fault | None = None
    """What every question about a quota raises, if anything."""
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

    async def quota(self, tenant: str, at: datetime) -> Quota | None:
        """What the test says."""
        if self.mute is not None:
            raise self.mute
        return self.quotas.get(tenant)

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

"""The stand-in for the ledger of budgets."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.runs.domain.plan import Plan, Spec
from services.runs.domain.task_view import Held, HeldMinutes, Level, Refused, Settled


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
                    asked = {"cost": cost.amount, "attempts": Decimal(attempts)}
                    return Refused(at, level, "cost", said, asked, self._spent(at) + cost.amount <= self.hard[at])
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
        spent = {"cost": self._spent(budget_id)}
        return Level("CNY", {"cost": self._taken(budget_id), **used}, hard=hard, deadline=deadline, spent=spent)

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
                spent = _counted({name: count for name, count in counted.items() if name in self.over}, at)
                said = f"{at}: {taken} of {most} {dimension} are taken"
                return Refused(at, level, dimension, said, asked, dimension == "attempts" and spent + more <= most)
        return None

    def _taken(self, level: str) -> Decimal:
        below = (item for item in self.held.items() if level in self._branch(item[1][0]))
        return sum((self.booked.get(hold, amount) for hold, (_, amount) in below), Decimal(0))

    def _spent(self, level: str) -> Decimal:
        return sum((self.booked[hold] for hold in self.over if level in self._branch(self.held[hold][0])), Decimal(0))

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

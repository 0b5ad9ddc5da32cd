"""What other contexts tell: a Task as runs sees it, what a Hold was answered with, what a check found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from libs.kernel.money import Money
from services.runs.domain.run import Artifact, Failure

PAUSED = "pause:"
"""How routing's reason begins for a Task that is held from new attempts."""


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One try of the Task."""

    id: str
    number: int
    supply: str
    channel: str
    state: str
    quote: Money | None
    cost: Money | None = None
    failure: Failure | None = None
    provider_task_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskView:
    """The Task at one revision.

    `state` is routing's word: queued, dispatching, running, succeeded, failed or cancelled.
    """

    id: str
    revision: int
    state: str
    cost: Money | None
    waiting_reason: str = ""
    attempts: tuple[AttemptView, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)
    degraded: bool = False
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a Task may cost at worst; `worst` None = nobody can say, `reason` tells why."""

    worst: Money | None
    attempts: int
    reason: str = ""

    @property
    def passing(self) -> bool:
        """Whether it is only now that nobody can say: prices are away, or change at this moment."""
        return self.worst is None and self.reason.partition(":")[0] in ("governance_backend_down", "revision_conflict")


@dataclass(frozen=True, slots=True)
class Quota:
    """What a tenant may spend in a period: the budget that counts it, and its currency."""

    budget_id: str
    currency: str


@dataclass(frozen=True, slots=True)
class Held:
    """Money was found. `soft`: budgets whose soft limit was reached by it; `past_soft`: those at or beyond theirs."""

    budget_id: str
    amount: Money
    attempts: int
    soft: tuple[str, ...] = ()
    past_soft: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldMinutes:
    """There are minutes of a reviewer. `soft` and `past_soft` as of money."""

    budget_id: str
    minutes: int
    soft: tuple[str, ...] = ()
    past_soft: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no room at that level: no money, no attempts, no minutes, or no time. `asked` by dimension, in the
    level's currency; {} where it was not the ledger that counted."""

    budget_id: str
    level: str
    dimension: str
    message: str
    asked: Mapping[str, Decimal] = field(default_factory=dict)
    may_free: bool = False
    """Only what is held there stands in the way: it may come free, and what is spent leaves room enough."""

    @property
    def lacks(self) -> dict[str, str]:
        """What was asked, as events tell it."""
        return {name: f"{amount.normalize():f}" for name, amount in self.asked.items() if amount}


@dataclass(frozen=True, slots=True)
class Level:
    """How a budget stands, by dimension: what is spent and held of it, where it warns and where it stops (0 = nowhere);
    after `deadline` it takes no Hold."""

    currency: str
    used: Mapping[str, Decimal]
    soft: Mapping[str, Decimal] = field(default_factory=dict)
    hard: Mapping[str, Decimal] = field(default_factory=dict)
    deadline: datetime | None = None
    spent: Mapping[str, Decimal] = field(default_factory=dict)
    """Of what is used."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What it really cost is booked. `soft`: budgets whose soft limit was reached by it; `beyond`: money booked above
    what had been held."""

    soft: tuple[str, ...] = ()
    beyond: Money | None = None


@dataclass(frozen=True, slots=True)
class Unpriced:
    """Nobody can say what it would cost, so nobody pays for it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check says of one artifact of a node; `failed` "" = good. No artifact: there was none to look at."""

    node: str
    check: str
    failed: str = ""
    artifact: Artifact | None = None

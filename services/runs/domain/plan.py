"""A production document as values: what is to be made, in which order, at what price, and who decides what.

Laws of this file:
- a Plan is read once, checked whole (RUN-3), and never changes; what happens to it is the Run's history;
- a single generation is a Plan with one node, so that one engine carries both;
- `nodes` stands in an order in which everything comes after what it needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

MAIN = "main"
"""The only node of a single generation."""
DEFAULT_ATTEMPTS = 4
DEFAULT_REVIEW = timedelta(hours=24)
DEFAULT_REVIEW_MINUTES = 10
"""What one look of a reviewer is expected to take."""
DEPUTY = "operator"


class Kind(StrEnum):
    """What a node does."""

    GENERATE = "generate"
    GATE = "gate"
    CHECK = "check"
    MAP = "map"


class ValueClass(StrEnum):
    """What a limit does to a node (COST-10): a hero may ask for more, a background node is simplified."""

    HERO = "hero"
    NORMAL = "normal"
    BACKGROUND = "background"


class Rank(StrEnum):
    """Where a review stands in the queue (HUMAN-3), first to last."""

    RIGHTS = "rights"
    RELEASE = "release"
    HERO = "hero"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class NodeBudget:
    """What one node may use. `cost` in the production's currency; None = only the levels above it limit."""

    attempts: int = DEFAULT_ATTEMPTS
    cost: Decimal | None = None
    wall_time: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One automatic check: `decodes`, `min_size`, `duration`, `hash`, `similar_to`, `text` …, with its argument."""

    name: str
    argument: Any = None


@dataclass(frozen=True, slots=True)
class Canary:
    """How many items of each class go first, and who lets the rest follow: their checks (`auto`) or a person (`gate`).

    `per` names the item's field that tells its class.
    """

    per: str = "shot_class"
    count: int = 1
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Review:
    """How a person is asked: how long, who is asked next, in which rank."""

    deadline: timedelta = DEFAULT_REVIEW
    deputy: str = DEPUTY
    rank: Rank = Rank.REST
    question: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """One node as declared. Fields that its kind does not use keep their defaults.

    `input`, `subject` and `over` may hold `${…}`; `needs` holds what is declared and what these name.
    """

    id: str
    kind: Kind
    needs: tuple[str, ...] = ()
    value_class: ValueClass = ValueClass.NORMAL
    model: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    degradation: str = ""
    billing_mode: str = ""
    priority: str = ""
    budget: NodeBudget = NodeBudget()
    consumes_steering: Mapping[str, str] = field(default_factory=dict)
    """Kind of steering -> path in the input, `prompt` for `input.prompt`."""
    checks: tuple[Check, ...] = ()
    memo: bool = False
    compensation: str = ""
    subject: Any = None
    """Of a gate: the value that an approval binds to. Of a check: what it looks at. None = what its needs gave."""
    review: Review = Review()
    over: Any = None
    """Of a map: a list of objects, each with `id`, or `${…}` that gives one."""
    item: "Spec | None" = None
    """Of a map: the node that each item becomes; its id is empty."""
    canary: Canary | None = None
    tolerate: int = 0
    concurrency: int = 0
    """Of a map: how many items are worked on at once; 0 = no limit of its own."""
    trial: int = 0
    """Of a map: while an item's `reference` is new, how many run until one of them succeeded (GATE-5); 0 = no limit."""

    @property
    def worth(self) -> ValueClass:
        """What a limit does to it; a map is worth what its items are."""
        return (self.item or self).value_class


@dataclass(frozen=True, slots=True)
class ReviewLoad:
    """How much open review a production bears (GATE-4): at `most` open, with the oldest beyond `oldest`, or with more
    than people decide within `horizon` at the rate of their last decisions, producing pauses until `resume` are open.
    """

    most: int = 20
    resume: int = 10
    oldest: timedelta = timedelta(hours=48)
    horizon: timedelta = timedelta(hours=48)
    minutes: int = DEFAULT_REVIEW_MINUTES
    """What one review is expected to take: so much is held for it (COST-10)."""


@dataclass(frozen=True, slots=True)
class PlanBudget:
    """What the whole production may use. `parent` is a budget above it, "" = none."""

    currency: str
    cost: Decimal | None = None
    soft: Decimal | None = None
    attempts: int = 0
    review_minutes: int = 0
    soft_review_minutes: int = 0
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole production. `budget` None: a single generation that nobody set a limit for."""

    name: str
    nodes: Mapping[str, Spec]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    budget: PlanBudget | None = None
    deadline: datetime | timedelta | None = None
    """A duration counts from the Run's creation."""
    reviews: ReviewLoad = ReviewLoad()
    concurrency: int = 0
    single: bool = False
    """Made from `model`: one Task, no retry above it (RUN-1a)."""

    def spec(self, node_id: str) -> Spec:
        """The declaration of a node or, for `map/item`, of the map's items. KeyError for one that is not there."""
        outer, slash, _ = node_id.partition("/")
        declared = self.nodes[outer]
        return declared.item if slash and declared.item is not None else declared

    @property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """By kind of steering: the nodes that declare it, a map in the place of its items."""
        found: dict[str, list[str]] = {}
        for spec in self.nodes.values():
            for kind in (spec.item or spec).consumes_steering:
                found.setdefault(kind, []).append(spec.id)
        return {kind: tuple(nodes) for kind, nodes in found.items()}

    def dependants(self, node_id: str) -> tuple[str, ...]:
        """The declared nodes that need it."""
        return tuple(spec.id for spec in self.nodes.values() if node_id in spec.needs)

"""How well productions go, worked out from their events (SLO-1). Pure.

Laws of this file:
- a figure of which nothing is known is None, never 0;
- a node that took another Run's result was not made: it counts for no yield and no retry;
- what people cancel is neither a success nor a failure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from statistics import fmean
from typing import Any

from libs.kernel.money import Money
from services.runs.domain.plan import MAIN, ValueClass
from services.runs.domain.run import TERMINAL_KINDS, Event, RunState

KINDS = frozenset(
    {
        "run_created",
        "node_ready",
        "attempt_started",
        "attempt_finished",
        "node_completed",
        "node_failed",
        "node_stale",
        "gate_opened",
        "gate_decided",
        "review_opened",
        "review_decided",
        *TERMINAL_KINDS.values(),
    }
)
"""The events that figures are made of."""
ALL = ""
"""The name under which the figures of all models stand."""
LATER = "low"
"""The priority of what nobody waits for."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Ratios are between 0 and 1, times in seconds, means over what was seen; None = nothing was."""

    runs: int = 0
    nodes: int = 0
    success_rate: float | None = None
    queue_time_s: float | None = None
    first_pass_yield: float | None = None
    retry_rate: float | None = None
    cost_per_usable_second: Mapping[str, Decimal] = field(default_factory=dict)
    """By currency: all attempts' cost over the seconds asked for that were made, of nodes that say a duration."""
    review_wait_s: float | None = None
    stale_propagation_s: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a node that was really made ended: at the first attempt, or not.

    `queue_s`: how long its last try waited for its attempt; None for one that waits in the background, as nobody minds
    how long. `cost`: of a second that was made; None where that cannot be said.
    """

    model: str
    at: datetime
    first_pass: bool
    queue_s: float | None = None
    cost: Money | None = None


@dataclass(slots=True)
class _Tally:
    runs: int = 0
    succeeded: int = 0
    ended: int = 0
    queue: list[float] = field(default_factory=list)
    passes: list[bool] = field(default_factory=list)
    attempts: int = 0
    retries: int = 0
    cost: dict[str, Decimal] = field(default_factory=dict)
    seconds: Decimal = Decimal(0)
    reviews: list[float] = field(default_factory=list)
    stale: list[float] = field(default_factory=list)

    def figures(self) -> Figures:
        return Figures(
            runs=self.runs,
            nodes=len(self.passes),
            success_rate=self.succeeded / self.ended if self.ended else None,
            queue_time_s=fmean(self.queue) if self.queue else None,
            first_pass_yield=fmean(self.passes) if self.passes else None,
            retry_rate=self.retries / self.attempts if self.attempts else None,
            cost_per_usable_second=(
                {currency: cost / self.seconds for currency, cost in self.cost.items()} if self.seconds else {}
            ),
            review_wait_s=fmean(self.reviews) if self.reviews else None,
            stale_propagation_s=fmean(self.stale) if self.stale else None,
        )


@dataclass(slots=True)
class _Node:
    model: str
    ready_at: datetime | None = None
    attempts: int = 0
    seconds: Decimal = Decimal(0)
    stale_at: datetime | None = None
    background: bool = False
    queue_s: float | None = None
    cost: dict[str, Decimal] = field(default_factory=dict)
    """Of the attempts since its last outcome, by currency."""


def service_levels(histories: Iterable[Sequence[Event]]) -> tuple[dict[str, Figures], list[Outcome]]:
    """(figures by model, under `ALL` those of everything; outcomes in the order of time), of whole Runs."""
    tallies: dict[str, _Tally] = {ALL: _Tally()}
    outcomes: list[Outcome] = []
    for events in histories:
        _Reader(tallies, outcomes).read(events)
    outcomes.sort(key=lambda outcome: outcome.at)
    return {name: tally.figures() for name, tally in sorted(tallies.items())}, outcomes


class _Reader:
    """One Run."""

    def __init__(self, tallies: dict[str, _Tally], outcomes: list[Outcome]) -> None:
        self._tallies = tallies
        self._outcomes = outcomes
        self._models: Mapping[str, str] = {}
        self._background: frozenset[str] = frozenset()
        self._nodes: dict[str, _Node] = {}
        self._asked: dict[str, datetime] = {}
        self._whole = ""
        self._input: Mapping[str, Any] = {}

    def read(self, events: Sequence[Event]) -> None:
        """Count every event."""
        for event in events:
            if event.kind == "run_created":
                self._created(event.data)
            elif event.kind in TERMINAL_KINDS.values():
                self._ended(event.kind)
            elif event.kind in ("gate_opened", "review_opened"):
                self._asked[event.data["review"]["id"]] = event.created_at
            elif event.kind in ("gate_decided", "review_decided"):
                if (asked := self._asked.pop(event.data["review_id"], None)) is not None:
                    self._tallies[ALL].reviews.append(_since(asked, event))
            elif event.kind in _STEPS:
                _STEPS[event.kind](self, self._node(event.data["node"]), event)

    def _created(self, data: Mapping[str, Any]) -> None:
        self._whole = data.get("model") or ""
        self._input = (data.get("order") or {}).get("input") or {}
        self._models = dict(models_of(data.get("production") or {}))
        self._background = frozenset(_in_background(data))
        for tally in self._tallies_of(self._whole):
            tally.runs += 1

    def _ended(self, kind: str) -> None:
        if kind == TERMINAL_KINDS[RunState.CANCELLED]:
            return
        for tally in self._tallies_of(self._whole):
            tally.ended += 1
            tally.succeeded += kind == TERMINAL_KINDS[RunState.SUCCEEDED]

    def _node(self, name: str) -> _Node:
        outer = name.partition("/")[0]
        model = self._models.get(outer, self._whole)
        return self._nodes.setdefault(name, _Node(model, background=outer in self._background))

    def _tallies_of(self, model: str) -> list[_Tally]:
        return [self._tallies[ALL], *([self._tallies.setdefault(model, _Tally())] if model else [])]

    def ready(self, node: _Node, event: Event) -> None:
        """A try begins."""
        node.ready_at = event.created_at
        told = event.data.get("input") or self._input
        node.seconds = _seconds(told.get("duration_s"))

    def started(self, node: _Node, event: Event) -> None:
        """An attempt at a provider."""
        node.attempts += 1
        for tally in self._tallies_of(node.model):
            tally.attempts += 1
            tally.retries += node.attempts > 1
            if node.ready_at is not None:
                tally.queue.append(_since(node.ready_at, event))
        if node.ready_at is not None and not node.background:
            node.queue_s = _since(node.ready_at, event)
        node.ready_at = None

    def finished(self, node: _Node, event: Event) -> None:
        """What it cost, whatever became of it."""
        cost = event.data.get("cost")
        if cost and node.seconds:
            _add(node.cost, cost)
            for tally in self._tallies_of(node.model):
                _add(tally.cost, cost)

    def completed(self, node: _Node, event: Event) -> None:
        """It gave a result."""
        if node.stale_at is not None:
            for tally in self._tallies_of(node.model):
                tally.stale.append(_since(node.stale_at, event))
            node.stale_at = None
        if node.attempts and not event.data.get("reused") and not event.data.get("reused_from"):
            self._outcome(node, event, first_pass=node.attempts == 1)
            for tally in self._tallies_of(node.model):
                tally.seconds += node.seconds
        node.attempts = 0

    def failed(self, node: _Node, event: Event) -> None:
        """It gave none."""
        if node.attempts:
            self._outcome(node, event, first_pass=False)
        node.attempts = 0

    def stale(self, node: _Node, event: Event) -> None:
        """What it gave is no longer of its input."""
        node.stale_at = node.stale_at or event.created_at

    def _outcome(self, node: _Node, event: Event, *, first_pass: bool) -> None:
        for tally in self._tallies_of(node.model):
            tally.passes.append(first_pass)
        cost = _per_second(node) if event.kind == "node_completed" else None
        self._outcomes.append(Outcome(node.model, event.created_at, first_pass, node.queue_s, cost))
        node.queue_s, node.cost = None, {}


_STEPS = {
    "node_ready": _Reader.ready,
    "attempt_started": _Reader.started,
    "attempt_finished": _Reader.finished,
    "node_completed": _Reader.completed,
    "node_failed": _Reader.failed,
    "node_stale": _Reader.stale,
}


def models_of(production: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """(node, model) of everything that a document declares."""
    for node in production.get("nodes") or ():
        inner = node.get("node") or node
        if inner.get("model"):
            yield node["id"], inner["model"]


def _in_background(data: Mapping[str, Any]) -> Iterable[str]:
    """The nodes of a new Run that may well be made later than others."""
    if (data.get("order") or {}).get("priority") == LATER:
        yield MAIN
    for node in (data.get("production") or {}).get("nodes") or ():
        inner = node.get("node") or node
        priority = (inner.get("options") or {}).get("priority")
        if inner.get("value_class") == ValueClass.BACKGROUND.value or priority == LATER:
            yield node["id"]


def _add(costs: dict[str, Decimal], cost: Mapping[str, str]) -> None:
    costs[cost["currency"]] = costs.get(cost["currency"], Decimal(0)) + Decimal(cost["amount"])


def _per_second(node: _Node) -> Money | None:
    """Of one currency; more than one are never added."""
    if len(node.cost) != 1 or not node.seconds:
        return None
    ((currency, amount),) = node.cost.items()
    return Money(currency, amount / node.seconds)


def _since(then: datetime, event: Event) -> float:
    return max((event.created_at - then).total_seconds(), 0.0)


def _seconds(told: Any) -> Decimal:
    return (
        Decimal(str(told)) if isinstance(told, (int, float)) and not isinstance(told, bool) and told > 0 else Decimal(0)
    )

"""One decision beside what it would have been, and the sums over many (SEL-23). Pure.

Laws of this file:
- before is what the record holds, after is the same `select` over the altered inputs;
- every figure of a tally is a sum or a count, so that the tallies of several pages can be added up;
- money of several currencies is never mixed: costs are kept by currency.
"""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.availability import HEALTHY
from services.routing.domain.decision import Decision, Inputs, Verdict
from services.routing.domain.ordering import expected_cost, success_percent

WAITS, FAILS = "(waits)", "(fails)"
EXAMPLES = 20
"""Changed decisions that one tally names."""
POLICY_STEP = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """One decision in figures. Those of money and success are there when a Supply was chosen."""

    choice: str
    """The Supply, or `(waits)` or `(fails)`."""
    reason: str
    quote: Money | None = None
    expected_cost: Money | None = None
    """SEL-20: what one success is expected to cost."""
    success_percent: int = 0
    """The success estimate, 0..100."""


def outcome(inputs: Inputs | None, decision: Decision) -> Outcome:
    """What a decision comes to; `inputs` are those it was made from, None where it had none and waits."""
    if decision.verdict is Verdict.WAIT or inputs is None:
        return Outcome(WAITS, decision.waiting_reason)
    if decision.verdict is Verdict.FAIL:
        return Outcome(FAILS, f"{decision.failure_code}: {decision.failure_message}")
    supply = inputs.supplies[decision.chosen]
    quote = inputs.quotes[supply.id].amount or Decimal(0)
    percent = success_percent(inputs.supply_health.get(supply.id, HEALTHY), inputs.policy.min_samples)
    cost = expected_cost(quote, percent, supply.charges_on_failure)
    reason = decision.steps[POLICY_STEP]
    return Outcome(supply.id, reason, Money(inputs.currency, quote), Money(inputs.currency, cost), percent)


@dataclass(frozen=True, slots=True)
class Example:
    """One decision that would have been another."""

    task_id: str
    round: int
    model: str
    before: Outcome
    after: Outcome


@dataclass(slots=True)
class Totals:
    """Sums over outcomes."""

    chosen: int = 0
    waiting: int = 0
    failed: int = 0
    costs: dict[str, Decimal] = field(default_factory=dict)
    """Expected cost by currency."""
    success_percents: int = 0

    def add(self, found: Outcome) -> None:
        """One outcome more."""
        if found.expected_cost is None:
            self.waiting += found.choice == WAITS
            self.failed += found.choice == FAILS
            return
        self.chosen += 1
        money = found.expected_cost
        self.costs[money.currency] = self.costs.get(money.currency, Decimal(0)) + money.amount
        self.success_percents += found.success_percent


@dataclass(slots=True)
class Tally:
    """What a stretch of history comes to under an alternative."""

    decided: int = 0
    untouched: int = 0
    refused: int = 0
    unreadable: int = 0
    changed: int = 0
    before: Totals = field(default_factory=Totals)
    after: Totals = field(default_factory=Totals)
    shared_before: Totals = field(default_factory=Totals)
    shared_after: Totals = field(default_factory=Totals)
    moves: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(model, from, to) -> how often."""
    examples: list[Example] = field(default_factory=list)

    def add(self, found: Example) -> None:
        """One decision with what it would have been, changed or not."""
        self.decided += 1
        self.before.add(found.before)
        self.after.add(found.after)
        if found.before.quote is not None and found.after.quote is not None:
            self.shared_before.add(found.before)
            self.shared_after.add(found.after)
        if found.before.choice == found.after.choice:
            return
        self.changed += 1
        self.moves[(found.model, found.before.choice, found.after.choice)] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(found)

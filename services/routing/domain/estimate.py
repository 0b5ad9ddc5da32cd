"""What one Task may cost at worst: the amount that a Hold takes before anything paid is called (COST-9). Pure.

Laws of this file:
- health, capacity and what is under way are not asked: they change before the Task's turn comes, the amount must not;
- a Supply counts if `select` could ever choose it: bound, in use, capable, priced, within the guardrails, and in a tier
  that the request may reach. With `only_supply` no other counts;
- the limits are those of the whole Task (COST-6: spent + quote), so they bound the sum over its Attempts. Under
  `emergency_availability` the emergency limit is what really bounds it (COST-7).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from libs.kernel.money import Money
from services.routing.domain.candidates import Assessor, Candidate, as_asked
from services.routing.domain.catalog import Policy, Tier
from services.routing.domain.decision import CapacityView, Inputs
from services.routing.domain.guardrails import Guard, baseline_of
from services.routing.domain.market import market_of
from services.routing.domain.selection import TIERS, is_strict, select


@dataclass(frozen=True, slots=True)
class Estimate:
    """`worst_cost` is in the catalogue's currency; None, with `unpriced_reason`, where no Supply could be chosen."""

    worst_cost: Money | None
    max_attempts: int
    unpriced_reason: str = ""


def estimate(inputs: Inputs) -> Estimate:
    """The worst permitted cost of a Task that has not begun."""
    unhindered = replace(
        inputs,
        supply_health={},
        channel_health={},
        supply_capacity={},
        channel_capacity={},
        global_capacity=CapacityView(),
        tried=(),
        not_before={},
        spent=Money.zero(inputs.currency),
    )
    attempts = inputs.request.attempts_within(inputs.policy.max_attempts)
    quotes = [candidate.quote for candidate in _eligible(unhindered) if candidate.quote is not None]
    if not quotes:
        return Estimate(None, attempts, select(unhindered).failure_message)
    worst = min(max(quotes) * attempts, _limit(inputs.policy))
    return Estimate(Money(inputs.currency, worst), attempts)


def _eligible(inputs: Inputs) -> Iterator[Candidate]:
    """Candidates of every tier that the request may reach."""
    policy = inputs.policy
    assessor = Assessor(inputs, market_of(inputs), as_asked(inputs.model, inputs.request.input))
    guard = Guard(policy, inputs.currency, baseline_of(assessor.baseline_quotes()), inputs.spent.amount)
    for tier in TIERS:
        if tier is Tier.DEGRADED and is_strict(inputs):
            continue
        for candidate in assessor.assess(tier, guard):
            if candidate.drop is None and candidate.affordable(policy.emergency_availability):
                yield candidate


def _limit(policy: Policy) -> Decimal:
    if not policy.emergency_availability:
        return policy.absolute_cost_limit
    return max(policy.absolute_cost_limit, policy.emergency_cost_limit)

"""The order of candidates (SEL-18): lexicographic, no weights.

SEL-19 asks for a total order whatever the input, so every part of a key is a plain comparable value and the Supply id
is the last one. A success rate is a number of whole per cent: the lower bound of its Wilson interval (95 %), rounded
down, once `min_samples` outcomes are in the window, else the neutral 90. Without steps two rates that differ by noise
would decide before cost; without a neutral value a Supply nobody has tried would rank first or last by accident.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import sqrt
from typing import NamedTuple

from services.routing.domain.catalog import Order
from services.routing.domain.decision import HealthView

NEUTRAL_PERCENT = 90
Z = 1.959963984540054
UNLIMITED = 1 << 31
PERCENT_BITS = 7
"""A health rank, shifted by so many, stands above every success rate of 0..100 per cent."""
NANO = Decimal(1).scaleb(-9)

Key = tuple[int | Decimal | str, ...]


class Standing(NamedTuple):
    """What one surviving candidate is ordered by. `health_rank` 0 is best; `free_slots` None = no gate."""

    supply: str
    health_rank: int
    success_percent: int
    expected_cost: Decimal
    free_slots: int | None
    priority: int


def success_percent(health: HealthView, min_samples: int) -> int:
    """The quantised success rate, 0..100."""
    _, _, _, _, rate, low, samples, _ = health
    if rate is None or samples < min_samples or samples < 1:
        return NEUTRAL_PERCENT
    if low is None:
        low = wilson_low(rate, samples)
    percent = int(low * 100 + 1e-9)
    return percent if 0 <= percent <= 100 else 0 if percent < 0 else 100


def wilson_low(rate: float, samples: int) -> float:
    """Lower bound of the 95 % Wilson score interval."""
    square = Z * Z
    centre = rate + square / (2 * samples)
    margin = Z * sqrt(rate * (1 - rate) / samples + square / (4 * samples * samples))
    return max(0.0, (centre - margin) / (1 + square / samples))


def expected_cost(quote: Decimal, percent: int, charges_on_failure: bool) -> Decimal:
    """SEL-20: what one success is expected to cost. An estimate under 1 % counts as 1 %."""
    if not charges_on_failure:
        return quote
    return (quote * 100 / max(1, percent)).quantize(NANO)


def order_key(order: Order, standing: Standing) -> Key:
    """Smaller is better."""
    slots = UNLIMITED if standing.free_slots is None else standing.free_slots
    health = (standing.health_rank << PERCENT_BITS) - standing.success_percent
    return KEYS[order](health, standing.expected_cost, -slots, standing.priority, standing.supply)


def _stable_first(health: int, cost: Decimal, slots: int, priority: int, last: int | str) -> Key:
    return (health, cost, slots, last)


def _cost_first(health: int, cost: Decimal, slots: int, priority: int, last: int | str) -> Key:
    return (cost, health, slots, last)


def _manual_priority(health: int, cost: Decimal, slots: int, priority: int, last: int | str) -> Key:
    return (-priority, cost, health, slots, last)


KEYS: Mapping[Order, Callable[[int, Decimal, int, int, int | str], Key]] = {
    Order.STABLE_FIRST: _stable_first,
    Order.COST_FIRST: _cost_first,
    Order.MANUAL_PRIORITY: _manual_priority,
}
"""The key of a candidate by health rank and success rate in one number, the expected cost of a success, its free slots
(negative), its priority, and what comes last: its id, or its place in the order of ids."""

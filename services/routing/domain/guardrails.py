"""What a request may cost: the baseline and the limits of the policy (COST-5, COST-6, COST-7).

| tier | limits that hold |
|---|---|
| exact | baseline x `stable_cost_multiplier_limit` under `stable_first` |
| fallback, degraded | baseline x `fallback_cost_multiplier_limit` under every order |
| every tier | spent on this Task + quote <= `absolute_cost_limit` |

Without a baseline (no exact Supply fits and has a price) there is nothing to multiply; the absolute limit holds.
In an emergency `emergency_cost_limit` takes the place of all three, and counts what the retries have cost already.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from services.routing.domain.catalog import Order, Policy, Tier


@dataclass(frozen=True, slots=True)
class Guard:
    """The limits of one decision. Amounts are in the catalogue's currency."""

    policy: Policy
    currency: str
    baseline: Decimal | None
    spent: Decimal

    def breach(self, tier: Tier, quote: Decimal) -> tuple[str, str] | None:
        """(reason code, figures) of the first limit that the quote is over; None = within all."""
        name, factor = self._multiplier(tier)
        if factor is not None and self.baseline is not None and quote > self.baseline * factor:
            return name, f"{amount(quote)} > baseline {amount(self.baseline)} x {factor:f}"
        limit = self.policy.absolute_cost_limit
        if self.spent + quote > limit:
            return "absolute_cost_limit", f"spent {amount(self.spent)} + {amount(quote)} > {amount(limit)}"
        return None

    def emergency_breach(self, quote: Decimal) -> str:
        """Figures if even an emergency may not pay this; empty if it may."""
        limit = self.policy.emergency_cost_limit
        if self.spent + quote > limit:
            return f"emergency: spent {amount(self.spent)} + {amount(quote)} > {amount(limit)}"
        return ""

    def _multiplier(self, tier: Tier) -> tuple[str, Decimal | None]:
        if tier is not Tier.EXACT:
            return "fallback_cost_multiplier_limit", self.policy.fallback_cost_multiplier_limit
        if self.policy.order is Order.STABLE_FIRST:
            return "stable_cost_multiplier_limit", self.policy.stable_cost_multiplier_limit
        return "", None


def baseline_of(quotes: Iterable[Decimal]) -> Decimal | None:
    """COST-5: the lowest; None without any."""
    return min(quotes, default=None)


def amount(value: Decimal) -> str:
    """An amount for a person: at least two decimals, no further zeros at the end."""
    plain = value.normalize()
    exponent = plain.as_tuple().exponent
    if isinstance(exponent, int) and exponent > -2:
        plain = plain.quantize(Decimal("0.01"))
    return format(plain, "f")

"""What a request may cost: the baseline and the limits of the policy (COST-5, COST-6, COST-7).

| tier | limits that hold |
|---|---|
| exact | baseline x `stable_cost_multiplier_limit` under `stable_first` |
| fallback, degraded | baseline x `fallback_cost_multiplier_limit` under every order |
| every tier | spent on this Task + quote <= `absolute_cost_limit` |

The multipliers compare quotes at an equal length (`QuoteView.weight`), baseline included: who may write longer is not
dearer for that. What is spent and held is the whole of a quote.

Without a baseline (no exact Supply fits and has a price) there is nothing to multiply; the absolute limit holds.
In an emergency `emergency_cost_limit` takes the place of all three, and counts what the retries have cost already.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from services.routing.domain.availability import NEVER, Drop
from services.routing.domain.catalog import Order, Policy, Tier

STEP = "SEL-11"
EXACT = Tier.EXACT
ENDLESS = Decimal("Infinity")
_new = tuple.__new__
SHORT = 28
"""Digits to which decimals are exact here."""


class Guard(Struct, frozen=True):
    """The limits of one decision. Amounts are in the catalogue's currency."""

    policy: Policy
    currency: str
    baseline: Decimal | None
    spent: Decimal

    def limits(self, tier: Tier) -> "Limits":
        """What a quote of that tier is compared with."""
        name, factor = self._multiplier(tier)
        most, words = ENDLESS, ""
        if factor is not None and self.baseline is not None:
            most, words = self.baseline * factor, f" > baseline {amount(self.baseline)} x {factor:f}"
        ceiling = min(most, self.policy.absolute_cost_limit - self.spent)
        return Limits(ceiling, most, self.policy, self.spent, name, words)

    def _multiplier(self, tier: Tier) -> tuple[str, Decimal | None]:
        if tier is not EXACT:
            return "fallback_cost_multiplier_limit", self.policy.fallback_cost_multiplier_limit
        if self.policy.order is Order.STABLE_FIRST:
            return "stable_cost_multiplier_limit", self.policy.stable_cost_multiplier_limit
        return "", None


class Limits(NamedTuple):
    """The limits of one tier. Only a quote over the `ceiling` is over any of them; no weight is above its quote."""

    ceiling: Decimal
    """The lower of `most`, and of what may still be spent."""
    most: Decimal
    """By the multiplier of the policy; `ENDLESS` where none holds."""
    policy: Policy
    spent: Decimal
    reason: str
    """What being over `most` is called, and how it is told."""
    words: str

    def over(self, quote: Decimal, weight: Decimal) -> tuple[Drop | None, str]:
        """For a quote over the ceiling, compared by that weight: the first limit that it is over, if any, and the
        figures if even an emergency may not pay."""
        emergency = ""
        if self.spent + quote > self.policy.emergency_cost_limit:
            emergency = f"emergency: {self._sum(quote, self.policy.emergency_cost_limit)}"
        if weight > self.most:
            return _new(Drop, (STEP, self.reason, amount(weight) + self.words, NEVER, None)), emergency
        if self.spent + quote <= self.policy.absolute_cost_limit:
            return None, ""
        return Drop(STEP, "absolute_cost_limit", self._sum(quote, self.policy.absolute_cost_limit)), emergency

    def _sum(self, quote: Decimal, limit: Decimal) -> str:
        return f"spent {amount(self.spent)} + {amount(quote)} > {amount(limit)}"


def baseline_of(quotes: Iterable[Decimal]) -> Decimal | None:
    """COST-5: the lowest; None without any."""
    return min(quotes, default=None)


def amount(value: Decimal) -> str:
    """An amount for a person: at least two decimals, no further zeros at the end."""
    text = str(value)
    if text.isdecimal() and len(text) < SHORT - 2:
        return f"{text}.00"
    if "." not in text or "E" in text or len(text) > SHORT:
        return _of_any_length(value)
    text = text.rstrip("0")
    if text[-1] == ".":
        return f"{text}00"
    return f"{text}0" if text[-2] == "." else text


def _of_any_length(value: Decimal) -> str:
    """The same of what is written with an exponent, or longer than decimals are exact."""
    plain = value.normalize()
    exponent = plain.as_tuple().exponent
    if isinstance(exponent, int) and exponent > -2:
        plain = plain.quantize(Decimal("0.01"))
    return format(plain, "f")

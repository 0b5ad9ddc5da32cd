"""What routing needs of cost_quote once a call was made. May raise `Fault`, raises nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from libs.kernel.money import Money
from services.routing.domain.usage import Usage

NOT_TOLD_YET = "told_of_revision"
"""Metadata of a fault: the prices of a catalogue revision are asked for a moment before cost_quote is told of it."""


@dataclass(frozen=True, slots=True)
class UsageItem:
    """One call to be settled, under the version of the rule that quoted it: its price is frozen at submission.

    `rule_id` and `rule_version` are those of the `QuoteView`. `facts` are the fields of the input that a price depends
    on (`resolution`, `n`, `duration_s` ...), for what usage does not say; never a conversation.
    """

    key: str
    """The Attempt; answers name it."""
    kind: str
    supply: str
    rule_id: str
    rule_version: int
    usage: Usage
    facts: Mapping[str, Any] = field(default_factory=dict)
    catalog_revision: int = 0
    """The revision that quoted: its rule and its exchange rates hold. 0 = the newest that has the version."""
    submitted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UsagePrice:
    """What usage costs, in the currency of the catalogue revision that quoted; None with the reason why not."""

    cost: Money | None
    kind: str = ""
    """`exact`; `ceiling` where something that decides the price was not reported and the dearest was taken."""
    unpriced_reason: str = ""
    explanation: str = ""


class UsagePrices(Protocol):
    """Settles reported usage."""

    async def price_usage(self, items: Sequence[UsageItem]) -> Mapping[str, UsagePrice]:
        """By key; at most 1,000 at once."""
        ...

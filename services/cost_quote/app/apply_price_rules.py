"""Take a catalogue revision's prices into force."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.cost_quote.domain.parsing import parse_rules
from services.cost_quote.ports import PriceBooks


async def apply_price_rules(
    books: PriceBooks, revision: int, currency: str, fx: Mapping[str, str], specs: Sequence[Mapping[str, Any]]
) -> int:
    """Keep the book; answers the revision in force. Fault validation_failed names every rule that is none."""
    parse_rules(specs, "/price_rules")
    return await books.add(revision, currency, fx, sorted(specs, key=lambda spec: str(spec["id"])))

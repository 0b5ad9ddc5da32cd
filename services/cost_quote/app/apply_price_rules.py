"""Take a catalogue revision's prices into force."""

from collections.abc import Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from services.cost_quote.domain.rules import RuleError, parse_rule
from services.cost_quote.ports import PriceBooks


async def apply_price_rules(
    books: PriceBooks, revision: int, currency: str, fx: Mapping[str, str], specs: Sequence[Mapping[str, Any]]
) -> int:
    """Keep the book; answers the revision in force. Fault validation_failed names every rule that is none."""
    faults: list[tuple[str, str]] = []
    for index, spec in enumerate(specs):
        try:
            parse_rule(spec)
        except RuleError as error:
            faults += [(f"/price_rules/{index}/spec/{path}", reason) for path, reason in error.faults]
    if faults:
        raise Fault.invalid(*faults)
    return await books.add(revision, currency, fx, sorted(specs, key=lambda spec: str(spec["id"])))

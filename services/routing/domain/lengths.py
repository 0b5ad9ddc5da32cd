"""How long a Supply makes a clip: never shorter than asked, in whole seconds or in the lengths that it declares.

Providers count whole seconds, and some know a few lengths alone. What is priced, held and sent is the length that is
made, so that a quote is never for something else.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from services.routing.domain.catalog import Kind, Supply


def as_made(supply: Supply, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The input with `duration_s` (seconds) as the Supply makes it; the same object where nothing changes."""
    asked = given.get("duration_s")
    if supply.kind is not Kind.VIDEO or isinstance(asked, bool) or not isinstance(asked, int | float):
        return given
    lengths = (supply.capabilities.get("duration_s") or {}).get("lengths") or ()
    made = min((length for length in lengths if length >= asked), default=ceil(asked))
    return given if made == asked else {**given, "duration_s": made}

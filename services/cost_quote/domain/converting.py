"""Money in every currency that the rate table leads to, exactly; one rounding at the end, to a whole nano."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil

from services.cost_quote.domain.quoting import PriceBook

Rounding = Callable[[Fraction], int]
UP: Rounding = ceil
"""For what is reserved: never less than it may come to."""
NEAREST: Rounding = round
"""For what was charged; half to even."""


def converted_into(book: PriceBook, currency: str, nanos: int, rounding: Rounding) -> Mapping[str, int]:
    """The amount by currency, its own included; only its own where the table does not know it."""
    rates = {name: Fraction(rate) for name, rate in book.fx.items()} | {book.currency: Fraction(1)}
    worth = {currency: nanos}
    own = rates.get(currency)
    if own is not None:
        worth |= {name: rounding(nanos * own / rate) for name, rate in rates.items() if name != currency}
    return worth

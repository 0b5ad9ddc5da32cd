"""A tenant's quota of money, read from the catalogue file."""

from decimal import Decimal

from services.routing.domain.catalog import Spend
from services.routing.domain.spec_reader import SpecReader

PERIODS = ("day", "week", "month")


def read_spend(reader: SpecReader | None) -> Spend | None:
    """`spend: {cost: "100.00", currency: CNY, period: month}`; None where there is none."""
    if reader is None:
        return None
    for name in ("cost", "period"):
        if not reader.has(name):
            reader.fault(name, "is required")
    cost = reader.amount("cost", Decimal(0), above_zero=True)
    period = reader.word("period", PERIODS, PERIODS[0])
    currency = reader.text("currency", "")
    if currency and not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
        reader.fault("currency", f"must be three capital letters, not {currency!r}")
    reader.close()
    return Spend(cost, period, currency)

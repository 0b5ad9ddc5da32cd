"""Money: a currency and an exact decimal amount. Floats never enter."""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

NANOS_PER_UNIT = 1_000_000_000
NANO = Decimal(1).scaleb(-9)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of one currency (ISO 4217 code, upper case). Arithmetic refuses to mix currencies."""

    currency: str
    amount: Decimal

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Decimal) or not self.amount.is_finite():
            raise ValueError(f"amount must be a finite Decimal, not {self.amount!r}")
        _check_currency(self.currency)

    @staticmethod
    @lru_cache(maxsize=64)
    def zero(currency: str) -> "Money":
        """No money of that currency."""
        return Money(currency, Decimal(0))

    @staticmethod
    def unchecked(currency: str, amount: Decimal) -> "Money":
        """The same as `Money(currency, amount)` for a currency and an amount that were looked at before, in less than
        half the time: a decision names one for every Supply."""
        money = _new(Money)
        _set_currency(money, currency)
        _set_amount(money, amount)
        return money

    def _same(self, other: "Money") -> Decimal:
        if self.currency != other.currency:
            raise ValueError(f"cannot mix {self.currency} and {other.currency}; convert with a rate first")
        return other.amount

    def __add__(self, other: "Money") -> "Money":
        return Money.unchecked(self.currency, self.amount + self._same(other))

    def __sub__(self, other: "Money") -> "Money":
        return Money.unchecked(self.currency, self.amount - self._same(other))

    def __mul__(self, factor: Decimal | int) -> "Money":
        return Money(self.currency, self.amount * factor)

    def __lt__(self, other: "Money") -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: "Money") -> bool:
        return self.amount <= self._same(other)

    def rounded(self) -> "Money":
        """The same amount to whole nanos of a unit, half to even: the precision of the wire."""
        return Money.unchecked(self.currency, self.amount.quantize(NANO, rounding=ROUND_HALF_EVEN))

    def to_nanos(self) -> int:
        """The amount in billionths of a unit, rounded half to even."""
        return int(self.amount.quantize(NANO, rounding=ROUND_HALF_EVEN).scaleb(9))

    @staticmethod
    def from_nanos(currency: str, nanos: int) -> "Money":
        """The inverse of `to_nanos`."""
        _check_currency(currency)
        return Money.unchecked(currency, Decimal(nanos).scaleb(-9))

    def __str__(self) -> str:
        """As people write it: `6.00 CNY`."""
        return "{amount} {currency}".format(**self.to_json())

    def to_json(self) -> dict[str, str]:
        """`{"currency": "CNY", "amount": "6.00"}`: at least two decimals, no trailing zeros beyond them."""
        amount = self.rounded().amount.normalize()
        exponent = amount.as_tuple().exponent
        if isinstance(exponent, int) and exponent > -2:
            amount = amount.quantize(Decimal("0.01"))
        return {"currency": self.currency, "amount": format(amount, "f")}

    def words(self) -> str:
        """As people write it: `6.00 CNY`."""
        return f"{self.to_json()['amount']} {self.currency}"


@lru_cache(maxsize=256)
def _check_currency(currency: str) -> None:
    if len(currency) != 3 or not currency.isalpha() or not currency.isupper():
        raise ValueError(f"currency must be three capital letters, not {currency!r}")


_new = object.__new__
_set_currency = Money.__dict__["currency"].__set__
_set_amount = Money.__dict__["amount"].__set__

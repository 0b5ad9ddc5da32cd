"""Price rules as values.

Laws of this file:
- every amount is a Decimal of the rule's own currency; a float in a declaration is refused, never rounded;
- a rule that cannot be understood is refused whole, with the path of each fault (`bands[0].price: …`);
- zero is a price only where it is written: a missing figure is never free (COST-4).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from libs.faults.fault import Fault


class BillingMode(StrEnum):
    """How a price is charged (COST-1)."""

    PER_SECOND = "per_second"
    PER_REQUEST = "per_request"
    PER_IMAGE = "per_image"
    PER_TOKEN = "per_token"
    PER_CHARACTER = "per_character"
    PER_PAGE = "per_page"


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per unit that holds while every field of `when` equals the input's."""

    rate: Decimal
    when: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Band:
    """One price for a whole range of a field, both ends included (COST-2)."""

    field: str
    low: Decimal
    high: Decimal
    price: Decimal


@dataclass(frozen=True, slots=True)
class TokenTier:
    """Rates per million tokens for requests whose context has at most `up_to` tokens (None = no end).

    The whole request is charged at its tier; tiers are never sliced.
    """

    input_per_million: Decimal
    output_per_million: Decimal
    cached_input_per_million: Decimal
    up_to: int | None = None


@dataclass(frozen=True, slots=True)
class PriceRule:
    """One version of one rule. What a billing mode does not use is empty."""

    id: str
    version: int
    currency: str
    billing_mode: BillingMode
    rate: Decimal | None = None
    rates: tuple[Rate, ...] = ()
    bands: tuple[Band, ...] = ()
    tiers: tuple[TokenTier, ...] = ()
    minimum: Decimal = Decimal(0)

    @property
    def plain_rate(self) -> Decimal | None:
        """The rate, where a quantity times the rate is all there is to the price."""
        by_quantity = self.billing_mode not in (BillingMode.PER_TOKEN, BillingMode.PER_REQUEST)
        return self.rate if by_quantity and not (self.rates or self.minimum) else None


class RuleError(ValueError):
    """A declaration that cannot be a rule. `faults` are (path within the declaration, reason)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {reason}" for path, reason in faults))
        self.faults = tuple(faults)


def parse_rule(spec: Mapping[str, Any]) -> PriceRule:
    """The rule that a catalogue entry of `prices` declares. Raises RuleError with every fault found."""
    faults: list[tuple[str, str]] = []
    mode = str(spec.get("billing_mode", ""))
    if mode not in set(BillingMode):
        raise RuleError([("billing_mode", f"must be one of {', '.join(BillingMode)}, not {mode!r}")])
    rule = PriceRule(
        id=str(spec.get("id", "")),
        version=int(spec.get("version", 1)),
        currency=str(spec.get("currency", "")),
        billing_mode=BillingMode(mode),
        rate=_optional_amount(spec, "rate", "rate", faults),
        rates=tuple(_rates(spec.get("rates", ()), faults)),
        bands=tuple(_bands(spec.get("bands", ()), faults)),
        tiers=tuple(_tiers(spec, faults)) if mode == BillingMode.PER_TOKEN else (),
        minimum=_optional_amount(spec, "minimum", "minimum", faults) or Decimal(0),
    )
    if not faults and rule.rate is None and not (rule.rates or rule.bands or rule.tiers):
        faults.append(("", f"a {mode} rule needs a rate, rates, bands or per-million prices"))
    if faults:
        raise RuleError(faults)
    return rule


def parse_rules(specs: Sequence[Mapping[str, Any]], pointer: str) -> dict[str, PriceRule]:
    """The rules by id. Fault validation_failed names every declaration that is none; `pointer` leads to the list."""
    rules: dict[str, PriceRule] = {}
    faults: list[tuple[str, str]] = []
    for index, spec in enumerate(specs):
        try:
            rule = parse_rule(spec)
        except RuleError as error:
            faults += [(f"{pointer}/{index}/spec/{path}", reason) for path, reason in error.faults]
        else:
            rules[rule.id] = rule
    if faults:
        raise Fault.invalid(*faults)
    return rules


def _amount(value: Any, path: str, faults: list[tuple[str, str]]) -> Decimal:
    if (isinstance(value, float) and not value.is_integer()) or isinstance(value, bool):
        faults.append((path, f'write the amount as text, "{value}", so that it stays exact'))
        return Decimal(0)
    try:
        amount = Decimal(str(int(value) if isinstance(value, float) else value))
    except InvalidOperation:
        faults.append((path, f"is no decimal number: {value!r}"))
        return Decimal(0)
    if not amount.is_finite() or amount < 0:
        faults.append((path, f"must not be negative or endless: {value!r}"))
        return Decimal(0)
    return amount


def _optional_amount(spec: Mapping[str, Any], key: str, path: str, faults: list[tuple[str, str]]) -> Decimal | None:
    return _amount(spec[key], path, faults) if spec.get(key) is not None else None


def _rates(entries: Any, faults: list[tuple[str, str]]) -> Iterable[Rate]:
    for index, entry in enumerate(entries):
        rate = _amount(entry.get("rate", ""), f"rates[{index}].rate", faults)
        yield Rate(rate, dict(entry.get("when", {})))


def _bands(entries: Any, faults: list[tuple[str, str]]) -> Iterable[Band]:
    for index, entry in enumerate(entries):
        path = f"bands[{index}]"
        low = _amount(entry.get("from", ""), f"{path}.from", faults)
        high = _amount(entry.get("to", ""), f"{path}.to", faults)
        if high < low:
            faults.append((path, f"ends at {high}, before it begins at {low}"))
        if not entry.get("field"):
            faults.append((f"{path}.field", "names no field of the input"))
        yield Band(str(entry.get("field", "")), low, high, _amount(entry.get("price", ""), f"{path}.price", faults))


def _tiers(spec: Mapping[str, Any], faults: list[tuple[str, str]]) -> Iterable[TokenTier]:
    entries = spec.get("tiers") or ([spec] if "input_per_million" in spec else [])
    for index, entry in enumerate(entries):
        path = f"tiers[{index}]." if "tiers" in spec else ""
        given = _amount(entry.get("input_per_million", ""), f"{path}input_per_million", faults)
        cached = _optional_amount(entry, "cached_input_per_million", f"{path}cached_input_per_million", faults)
        made = _optional_amount(entry, "output_per_million", f"{path}output_per_million", faults)
        up_to = entry.get("up_to")
        yield TokenTier(
            input_per_million=given,
            output_per_million=made if made is not None else Decimal(0),
            cached_input_per_million=cached if cached is not None else given,
            up_to=int(up_to) if up_to is not None else None,
        )

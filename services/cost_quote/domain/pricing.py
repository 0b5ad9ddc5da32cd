"""What one request costs under one rule, in the rule's own currency.

Facts are read from the input by their public names: `duration_s`, `n`, `text`, `resolution` and so on. An amount is
`exact` where the request alone decides it and `ceiling` where usage will.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from services.cost_quote.domain.rules import BillingMode, PriceRule, TokenTier

PER_TOKEN, PER_REQUEST = BillingMode.PER_TOKEN, BillingMode.PER_REQUEST
"""Looked up once: the member of an enumeration is found by a call, and every Supply asks for these."""
MILLION = Decimal(1_000_000)
WHOLE_DIGITS = 10
MOST_DIGITS = 18
"""Before the point, of a figure that is taken for one: nobody orders more, and the arithmetic stays exact."""
DEFAULT_OUTPUT_TOKENS = 4096
CHARACTERS_PER_TOKEN = 2
"""Few texts have fewer characters a token: a ceiling errs upwards."""

QUANTITIES: Mapping[BillingMode, tuple[str, str]] = {
    BillingMode.PER_SECOND: ("duration_s", "s"),
    BillingMode.PER_IMAGE: ("n", "image"),
    BillingMode.PER_CHARACTER: ("text", "character"),
    BillingMode.PER_PAGE: ("pages", "page"),
}


class Priced(NamedTuple):
    """An amount of the rule's currency; `kind` is `exact` or `ceiling`; `explanation` shows the arithmetic."""

    amount: Decimal
    kind: str
    explanation: str


class Unpriced(NamedTuple):
    """Why the rule has no price for this request."""

    reason: str


class Asked:
    """One request with its figures, each read once however many rules price it."""

    __slots__ = ("_decimals", "_quantities", "request")

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self._decimals: dict[str, Decimal | None] = {}
        self._quantities: dict[BillingMode, Quantity | Unpriced] = {}

    def decimal(self, name: str) -> Decimal | None:
        """A field as a decimal; None where it is absent or no number."""
        if name not in self._decimals:
            self._decimals[name] = _decimal(self.request.get(name))
        return self._decimals[name]

    def quantity(self, mode: BillingMode) -> "Quantity | Unpriced":
        """What a mode that charges by units charges for."""
        found = self._quantities.get(mode)
        if found is None:
            found = self._quantities[mode] = _quantity(mode, self)
        return found


class Quantity(NamedTuple):
    """What a request is charged for by a mode that charges by units."""

    amount: Decimal
    kind: str
    words: str
    """For the explanation: `5 s x `."""
    whole: bool
    """Whether it is a whole number of moderate size, written without an exponent."""


def price(rule: PriceRule, request: Mapping[str, Any]) -> Priced | Unpriced:
    """The price of `request` under `rule`; never zero by omission."""
    return price_asked(rule, Asked(request))


def price_asked(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    """The same for a request that several rules price."""
    if rule.billing_mode is PER_TOKEN:
        found = _by_tokens(rule, asked.request)
    elif rule.billing_mode is PER_REQUEST:
        found = _by_request(rule, asked)
    else:
        found = _by_quantity(rule, asked)
    return _with_minimum(rule, found)


def _with_minimum(rule: PriceRule, found: Priced | Unpriced) -> Priced | Unpriced:
    if rule.minimum and isinstance(found, Priced) and found.amount < rule.minimum:
        return Priced(rule.minimum, found.kind, f"{found.explanation}, minimum {rule.minimum}")
    return found


def _by_quantity(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    quantity = asked.quantity(rule.billing_mode)
    if isinstance(quantity, Unpriced):
        return quantity
    rate = _rate(rule, asked) if rule.rates else rule.rate
    if rate is None:
        return Unpriced(f"no rate of {rule.id} fits {_conditions(rule, asked.request)}")
    return Priced(quantity.amount * rate, quantity.kind, f"{quantity.words}{rate!s}")


def _quantity(mode: BillingMode, asked: Asked) -> Quantity | Unpriced:
    name, unit = QUANTITIES[mode]
    amount, kind = _amount(mode, asked)
    if amount is None or amount < 0:
        return Unpriced(f"{mode} needs {name}, a number from 0 up, of at most {MOST_DIGITS} digits")
    text = str(amount)
    return Quantity(amount, kind, f"{text} {unit} x ", text.isdecimal() and len(text) < WHOLE_DIGITS)


def _amount(mode: BillingMode, asked: Asked) -> tuple[Decimal | None, str]:
    match mode:
        case BillingMode.PER_IMAGE:
            return asked.decimal("n") if "n" in asked.request else Decimal(1), "exact"
        case BillingMode.PER_CHARACTER:
            text = asked.request.get("text")
            if "characters" in asked.request:
                return asked.decimal("characters"), "exact"
            return (Decimal(len(text)), "exact") if isinstance(text, str) else (None, "exact")
        case BillingMode.PER_PAGE:
            pages = asked.decimal("pages")
            return (pages, "exact") if pages is not None else (Decimal(1), "ceiling")
        case _:
            return asked.decimal("duration_s"), "exact"


def _rate(rule: PriceRule, asked: Asked) -> Decimal | None:
    """The first rate whose conditions all hold, else the plain rate."""
    for rate in rule.rates:
        if all(_equal(asked, name, wanted) for name, wanted in rate.when.items()):
            return rate.rate
    return rule.rate


def _by_request(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    request = asked.request
    for band in rule.bands:
        value = asked.decimal(band.field)
        if value is not None and band.low <= value <= band.high:
            return Priced(band.price, "exact", f"{band.field} {value} in {band.low}-{band.high}: {band.price}")
    if rule.bands and rule.rate is None and not rule.rates:
        fields = {band.field: request.get(band.field) for band in rule.bands}
        said = ", ".join(f"{name}={value}" for name, value in fields.items())
        return Unpriced(f"no band of {rule.id} fits {said}")
    rate = _rate(rule, asked)
    if rate is None:
        return Unpriced(f"no rate of {rule.id} fits {_conditions(rule, request)}")
    return Priced(rate, "exact", f"1 request x {rate}")


def _by_tokens(rule: PriceRule, request: Mapping[str, Any]) -> Priced | Unpriced:
    given = _count(request["input_tokens"]) if "input_tokens" in request else _tokens_in(request)
    made = _count(request.get("max_output_tokens", request.get("max_tokens"))) or DEFAULT_OUTPUT_TOKENS
    if "usage" in request:
        return _by_usage(rule, request["usage"])
    tier = _tier(rule, given)
    if tier is None:
        return Unpriced(f"no tier of {rule.id} holds {given} input tokens")
    amount = (tier.input_per_million * given + tier.output_per_million * made) / MILLION
    return Priced(amount, "ceiling", f"at most {given} tokens in, {made} out")


def _by_usage(rule: PriceRule, usage: Mapping[str, Any]) -> Priced | Unpriced:
    given = _count(usage.get("input_tokens"))
    cached = _count(usage.get("cached_input_tokens"))
    made = _count(usage.get("output_tokens"))
    tier = _tier(rule, given)
    if tier is None:
        return Unpriced(f"no tier of {rule.id} holds {given} input tokens")
    fresh = max(0, given - cached)
    amount = (
        tier.input_per_million * fresh + tier.cached_input_per_million * cached + tier.output_per_million * made
    ) / MILLION
    return Priced(amount, "exact", f"{fresh} tokens in, {cached} cached, {made} out")


def price_tokens(rule: PriceRule, usage: Any) -> Priced | Unpriced:
    """The price of reported tokens: `input_tokens`, `output_tokens` and `cached_input_tokens` of `usage`, None where
    they were not reported."""
    if usage.input_tokens is None:
        return Unpriced(f"the provider reported no input_tokens, by which {rule.id} charges")
    if usage.output_tokens is None and any(tier.output_per_million for tier in rule.tiers):
        return Unpriced(f"the provider reported no output_tokens, by which {rule.id} charges")
    counts = {name: getattr(usage, name) or 0 for name in ("input_tokens", "cached_input_tokens", "output_tokens")}
    return _with_minimum(rule, _by_usage(rule, counts))


def _tier(rule: PriceRule, tokens: int) -> TokenTier | None:
    return next((tier for tier in rule.tiers if tier.up_to is None or tokens <= tier.up_to), None)


def _tokens_in(request: Mapping[str, Any]) -> int:
    texts = [request.get("prompt"), request.get("text"), request.get("input")]
    texts += [message.get("content") for message in request.get("messages", ()) if isinstance(message, Mapping)]
    characters = sum(_characters(text) for text in texts)
    return -(-characters // CHARACTERS_PER_TOKEN)


def _characters(text: Any) -> int:
    if isinstance(text, str):
        return len(text)
    if isinstance(text, Mapping):
        return sum(_characters(item) for item in text.values())
    if isinstance(text, (list, tuple)):
        return sum(_characters(item) for item in text)
    return 0


def _conditions(rule: PriceRule, request: Mapping[str, Any]) -> str:
    names = sorted({name for rate in rule.rates for name in rate.when})
    return ", ".join(f"{name}={request.get(name)}" for name in names) or "this request"


def _equal(asked: Asked, name: str, wanted: Any) -> bool:
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        return asked.decimal(name) == _decimal(wanted)
    return bool(asked.request.get(name) == wanted)


def _count(value: Any) -> int:
    """0 for what is no number of things."""
    return max(0, int(_decimal(value) or 0))


def _decimal(value: Any) -> Decimal | None:
    """None for what is no number, endless, or longer than `MOST_DIGITS`."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = Decimal(repr(value) if isinstance(value, float) else str(value))
    except (InvalidOperation, ValueError):
        return None
    return found if found.is_finite() and found.adjusted() < MOST_DIGITS else None

"""What one request costs under one rule, in the rule's own currency.

Facts are read from the input by their public names: `duration_s`, `n`, `text`, `resolution` and so on. An amount is
`exact` where the request alone decides it and `ceiling` where the provider or usage will: then it is the most that can
be charged.

Laws of this file:
- price = (units x rate / per + surcharges) x multipliers x times, at least the minimum, in whole credits where the rule
  counts in them; nothing is rounded on the way;
- where several rates may come to hold, the dearest is taken: every part only grows with each of its factors.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from typing import Any, NamedTuple

from services.cost_quote.domain.facts import MOST_DIGITS, Asked, count_of
from services.cost_quote.domain.rules import ONE, ZERO, BillingMode, Condition, PriceRule
from services.cost_quote.domain.token_prices import Tokens, ceiling_of, cost_of_tokens
from services.cost_quote.domain.video_tokens import tokens_of

PER_TOKEN, PER_REQUEST = BillingMode.PER_TOKEN, BillingMode.PER_REQUEST
"""Looked up once: the member of an enumeration is found by a call, and every Supply asks for these."""
EXACTLY = Context(prec=150)
"""More digits than any product of a rule's figures has."""
WHOLE_DIGITS = 10

QUANTITIES: Mapping[BillingMode, tuple[str, str]] = {
    BillingMode.PER_SECOND: ("duration_s", "s"),
    BillingMode.PER_IMAGE: ("n", "image"),
    BillingMode.PER_CHARACTER: ("text", "character"),
    BillingMode.PER_PAGE: ("pages", "page"),
}
EXACT, CEILING = "exact", "ceiling"


class Priced(NamedTuple):
    """An amount of the rule's currency; `kind` is `exact` or `ceiling`; `explanation` shows the arithmetic."""

    amount: Decimal
    kind: str
    explanation: str


class Unpriced(NamedTuple):
    """Why the rule has no price for this request."""

    reason: str


class Quantity(NamedTuple):
    """What a request is charged for by a mode that charges by units."""

    amount: Decimal
    kind: str
    words: str
    """For the explanation: `5 s x `."""
    whole: bool
    """Whether it is a whole number of moderate size, written without an exponent."""


def quantity_of(asked: Asked, mode: BillingMode) -> Quantity | Unpriced:
    """What a mode that charges by units charges for."""
    found = asked.quantities.get(mode)
    if found is None:
        found = asked.quantities[mode] = _quantity(mode, asked)
    known: Quantity | Unpriced = found
    return known


def price(rule: PriceRule, request: Mapping[str, Any], at: datetime | None = None) -> Priced | Unpriced:
    """The price of `request` under `rule`, submitted `at`; never zero by omission."""
    return price_asked(rule, Asked(request, at))


def price_asked(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    """The same for a request that several rules price."""
    if rule.until is not None and asked.at is not None and asked.at >= rule.until:
        return Unpriced(f"{rule.id} ended with {(rule.until - timedelta(days=1)).date()}")
    return charge(rule, asked, None)


def charge(rule: PriceRule, asked: Asked, used: Tokens | None) -> Priced | Unpriced:
    """The price, of the tokens that were `used` where they are known, whether the rule still quotes or not."""
    with localcontext(EXACTLY):
        if rule.video_tokens is not None:
            found = _by_video_tokens(rule, asked, used)
        elif rule.billing_mode is PER_TOKEN:
            found = _by_tokens(rule, asked, used)
        elif rule.billing_mode is PER_REQUEST:
            found = _by_request(rule, asked)
        else:
            found = _by_quantity(rule, asked)
        return found if isinstance(found, Unpriced) else _completed(rule, asked, found)


def _completed(rule: PriceRule, asked: Asked, found: Priced) -> Priced | Unpriced:
    """With surcharges, multipliers, number, minimum and credits."""
    total, kind, words = found
    for item in rule.surcharges:
        holds = asked.holds(item.condition)
        number = asked.counted(item.field)
        if number is None and item.most is not None and holds is not False:
            number, kind = item.most, CEILING
        beyond = max(ZERO, (number or ZERO) - item.free)
        if holds is not False and beyond:
            kind = kind if holds else CEILING
            total, words = total + beyond * item.rate, f"{words} + {beyond} of {item.field} x {item.rate}"
    for factor in rule.multipliers:
        holds = asked.holds(factor.condition)
        if holds is None:
            kind = CEILING
        if holds or (holds is None and factor.factor > 1):
            total, words = total * factor.factor, f"({words}) x {factor.factor}"
    if rule.times and asked.given(rule.times):
        number = asked.decimal(rule.times)
        if number is None or number < 0:
            return Unpriced(f"{rule.id} multiplies by {rule.times}, which is no number from 0 up")
        total, words = total * number, f"({words}) x {number}"
    if rule.minimum and total < rule.minimum:
        total, words = rule.minimum, f"{words}, minimum {rule.minimum}"
    if rule.credit is not None:
        counted = total.to_integral_value(ROUND_CEILING) if rule.whole_credits else total
        total, words = counted * rule.credit, f"{words} = {counted:f} credits x {rule.credit}"
    return Priced(total, kind, words)


# --- By units ---------------------------------------------------------------------------------------------------------


def _by_quantity(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    quantity = _units(rule, asked)
    if isinstance(quantity, Unpriced):
        return quantity
    rate = _dearest(rule, asked)
    if isinstance(rate, Unpriced):
        return rate
    amount, kind = quantity.amount * rate.amount, quantity.kind if rate.kind == EXACT else CEILING
    if rule.per != ONE:
        return Priced(amount / rule.per, kind, f"{quantity.words}{rate.amount!s} / {rule.per:f}")
    return Priced(amount, kind, f"{quantity.words}{rate.amount!s}")


def _units(rule: PriceRule, asked: Asked) -> Quantity | Unpriced:
    """What the rule counts, in started steps where it counts those."""
    if rule.pixels:
        found = _pixels(rule, asked)
    elif rule.quantity:
        found = _fact(rule.quantity, asked)
    else:
        found = quantity_of(asked, rule.billing_mode)
    if rule.most_units is not None and (isinstance(found, Unpriced) or _left_open(rule, asked, found)):
        found = Quantity(rule.most_units, CEILING, f"at most {rule.most_units:f} units x ", False)
    if isinstance(found, Unpriced) or not (rule.round_up_to or rule.least_units):
        return found
    amount = found.amount if rule.pixels else _stepped(found.amount, rule.round_up_to)
    amount = max(amount, rule.least_units)
    return found if amount == found.amount else found._replace(amount=amount, words=f"{amount:f} units x ")


def _left_open(rule: PriceRule, asked: Asked, found: Quantity) -> bool:
    name = rule.quantity or QUANTITIES[rule.billing_mode][0]
    return asked.undecided(name) or (found.kind == CEILING and not rule.pixels)


def _stepped(amount: Decimal, step: Decimal) -> Decimal:
    return (amount / step).to_integral_value(ROUND_CEILING) * step if step else amount


def _fact(name: str, asked: Asked) -> Quantity | Unpriced:
    amount = asked.counted(name)
    if amount is None or amount < 0:
        return Unpriced(f"it needs {name}, a number from 0 up, of at most {MOST_DIGITS} digits")
    return Quantity(amount, EXACT, f"{amount} of {name} x ", False)


def _pixels(rule: PriceRule, asked: Asked) -> Quantity | Unpriced:
    """Pixels of all pictures, each in started steps."""
    count = quantity_of(asked, BillingMode.PER_IMAGE)
    if isinstance(count, Unpriced):
        return count
    sides = str(asked.fact("size") or "").lower().split("x")
    if len(sides) == 2 and all(side.isdecimal() and len(side) < WHOLE_DIGITS for side in sides):
        each, kind = Decimal(int(sides[0]) * int(sides[1])), count.kind
    elif rule.most_units is not None:
        each, kind = rule.most_units, CEILING
    else:
        return Unpriced(f"{rule.id} needs size as WIDTHxHEIGHT in pixels, for example 1024x1024")
    each = _stepped(each, rule.round_up_to)
    return Quantity(count.amount * each, kind, f"{count.amount} x {each:f} pixels x ", False)


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
            return asked.decimal("n") if "n" in asked.request else Decimal(1), EXACT
        case BillingMode.PER_CHARACTER:
            if "characters" in asked.request:
                return asked.decimal("characters"), EXACT
            text = asked.request.get("text")
            return (Decimal(len(text)), EXACT) if isinstance(text, str) else (None, EXACT)
        case BillingMode.PER_PAGE:
            pages = asked.decimal("pages")
            return (pages, EXACT) if pages is not None else (Decimal(1), CEILING)
        case _:
            return asked.decimal("duration_s"), EXACT


def _by_video_tokens(rule: PriceRule, asked: Asked, used: Tokens | None) -> Priced | Unpriced:
    assert rule.video_tokens is not None
    found = tokens_of(rule.video_tokens, asked, rule.most_units)
    if used is not None and used.output is not None:
        found = (Decimal(used.output), False)
    if isinstance(found, str):
        return Unpriced(f"{rule.id} {found}")
    rate = _dearest(rule, asked)
    if isinstance(rate, Unpriced):
        return rate
    tokens, open_ = found
    kind = CEILING if open_ or rate.kind == CEILING else EXACT
    return Priced(
        tokens * rate.amount / rule.per, kind, f"{tokens.normalize():f} tokens x {rate.amount} / {rule.per:f}"
    )


# --- By request -------------------------------------------------------------------------------------------------------


def _by_request(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    for band in rule.bands:
        value = asked.decimal(band.field)
        if value is not None and band.low <= value <= band.high:
            return Priced(band.price, EXACT, f"{band.field} {value} in {band.low}-{band.high}: {band.price}")
    open_ = [band for band in rule.bands if asked.undecided(band.field)]
    if open_:
        most = max(open_, key=lambda band: band.price)
        return Priced(most.price, CEILING, f"{most.field} is left to the provider: at most {most.price}")
    if rule.bands and rule.rate is None and not rule.rates:
        said = ", ".join(f"{name}={asked.fact(name)}" for name in dict.fromkeys(band.field for band in rule.bands))
        return Unpriced(f"no band of {rule.id} fits {said}")
    rate = _dearest(rule, asked)
    return rate if isinstance(rate, Unpriced) else rate._replace(explanation=f"1 request x {rate.amount}")


# --- By tokens --------------------------------------------------------------------------------------------------------


def _by_tokens(rule: PriceRule, asked: Asked, used: Tokens | None) -> Priced | Unpriced:
    usage = asked.request.get("usage")
    if used is None and isinstance(usage, Mapping):
        used = Tokens(**{name: count_of(usage.get(key)) for name, key in _OF_A_REQUEST.items()})
    found = ceiling_of(rule, asked) if used is None else cost_of_tokens(rule, asked, used)
    return Unpriced(found) if isinstance(found, str) else Priced(*found)


_OF_A_REQUEST = {name: f"{name}_tokens" for name in Tokens.__slots__}


# --- Rates ------------------------------------------------------------------------------------------------------------


def _dearest(rule: PriceRule, asked: Asked) -> Priced | Unpriced:
    """The first rate whose condition holds, else the plain rate; the dearest of what may come to hold."""
    if not rule.rates:
        return Unpriced(f"{rule.id} has no rate") if rule.rate is None else Priced(rule.rate, EXACT, "")
    may: list[Decimal] = []
    for rate in rule.rates:
        holds = asked.holds(rate.condition)
        if holds is not False:
            may.append(rate.rate)
        if holds:
            return Priced(max(may), EXACT if len(may) == 1 else CEILING, "")
    if rule.rate is None:
        if not may:
            return Unpriced(f"no rate of {rule.id} fits {_conditions((r.condition for r in rule.rates), asked)}")
        return Priced(max(may), CEILING, "")
    return Priced(max([rule.rate, *may]), CEILING if may else EXACT, "")


def _conditions(conditions: Iterable[Condition], asked: Asked) -> str:
    names = sorted({name for condition in conditions for name in condition.when})
    return ", ".join(f"{name}={asked.fact(name)}" for name in names) or "this request"

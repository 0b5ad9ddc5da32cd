"""Whether what was asked, reported, delivered and charged are one story (OPS-6 `cost_drift`). Pure.

Laws of this file:
- a figure that nobody told is no witness: only what two of them tell differently is drift;
- what lies within the tolerance is none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from libs.kernel.money import Money
from services.routing.domain.measure import Measure, MeasuredDraft
from services.routing.domain.task import Artifact
from services.routing.domain.usage import Usage

LENGTH_SHARE = 0.05
REPORTED_SHARE = 0.7
"""Of the pixels asked for, where a provider names a resolution: the next class down has less than half."""
NAMED_SIDES = {"2k": 1440, "4k": 2160}
OPEN = ("", "auto", "adaptive", "none")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`cost_share` of an exact quote or of what usage costs; lengths apart by `length_s` and 5 %; a file of at least
    `pixel_share` of the pixels asked for (0: not compared)."""

    cost_share: Decimal = Decimal("0.05")
    length_s: float = 1.0
    pixel_share: float = 0.7


USUAL = Tolerance()


class Promised(Protocol):
    """What was sent at what price: an Attempt, or a try of a synchronous call."""

    @property
    def id(self) -> str: ...
    @property
    def supply(self) -> str: ...
    @property
    def quote(self) -> Money: ...
    @property
    def quote_kind(self) -> str: ...
    @property
    def price_rule(self) -> str: ...
    @property
    def input(self) -> Mapping[str, Any]: ...


class Promise(Struct, frozen=True):
    """One that is no Attempt."""

    id: str
    supply: str
    quote: Money
    quote_kind: str
    price_rule: str
    input: Mapping[str, Any]


class Delivery(Struct, frozen=True):
    """What is known of one delivery. `settled`: what its usage costs by the rule that quoted; None = not priced."""

    cost: Money
    settled: Money | None
    usage: Usage
    output: Mapping[str, Any]
    artifacts: tuple[Artifact, ...]


class _Found(NamedTuple):
    """What does not fit, in words and as the figure that it was compared with."""

    said: str
    measure: Measure


def drift_alerts(attempt: Promised, delivery: Delivery, within: Tolerance = USUAL) -> tuple[MeasuredDraft, ...]:
    """One alert for the Supply, naming everything that does not fit and measuring the first of it; none where all
    fits."""
    found = [
        *_of_money(attempt, delivery, within.cost_share),
        *_of_lengths(attempt, delivery, within.length_s),
        *_of_pixels(attempt, delivery, within.pixel_share),
        *_of_number(delivery),
    ]
    if not found:
        return ()
    text = f"attempt {attempt.id} at {attempt.supply}: {'; '.join(item.said for item in found)}"
    cause = f"attempt {attempt.id}"
    return (MeasuredDraft("cost_drift", "high", attempt.supply, text, cause, found[0].measure),)


def _measured(figure: str, unit: str, baseline: Decimal | float, value: Decimal | float) -> Measure:
    return Measure(figure, unit, float(baseline), (float(value),))


def _of_money(attempt: Promised, delivery: Delivery, share: Decimal) -> Iterator[_Found]:
    quote, cost = attempt.quote, delivery.cost
    if attempt.quote_kind == "ceiling" and cost.amount > quote.amount:
        said = f"{_money(cost)} is booked, more than the ceiling of {_money(quote)}"
        yield _Found(said, _costs(cost, quote))
    elif attempt.quote_kind == "exact" and _apart(cost.amount, quote.amount, share):
        said = f"{_money(cost)} is booked against an exact quote of {_money(quote)}"
        yield _Found(said, _costs(cost, quote))
    settled = delivery.settled
    if settled is not None and settled.currency == cost.currency and _apart(cost.amount, settled.amount, share):
        said = f"the provider charges {_money(cost)} for usage that costs {_money(settled)} by {attempt.price_rule}"
        yield _Found(said, _costs(cost, settled))


def _costs(cost: Money, baseline: Money) -> Measure:
    return _measured("cost", cost.currency, baseline.amount, cost.amount)


def _apart(one: Decimal, other: Decimal, share: Decimal) -> bool:
    return abs(one - other) > share * other


def _money(money: Money) -> str:
    return money.words()


def _of_lengths(attempt: Promised, delivery: Delivery, apart_s: float) -> Iterator[_Found]:
    asked = attempt.input.get("duration_s")
    probed = [item.duration_s for item in delivery.artifacts if item.duration_s]
    told = {
        "asked": float(asked) if isinstance(asked, (int, float)) and asked > 0 else None,
        "reported": float(delivery.usage.seconds) if delivery.usage.seconds is not None else None,
        "delivered": max(probed) if probed else None,
    }
    known = {name: seconds for name, seconds in told.items() if seconds is not None}
    if known and max(known.values()) - min(known.values()) > max(apart_s, LENGTH_SHARE * max(known.values())):
        first, *others = known.values()
        furthest = max(others, key=lambda seconds: abs(seconds - first))
        said = ", ".join(f"{seconds:g} s {name}" for name, seconds in known.items())
        yield _Found(said, _measured("length", "s", first, furthest))


def _of_pixels(attempt: Promised, delivery: Delivery, share: float) -> Iterator[_Found]:
    asked = str(attempt.input.get("resolution") or attempt.input.get("size") or "").lower()
    wanted = _pixels(asked)
    if asked in OPEN or not wanted:
        return
    said = str(delivery.output.get("resolution") or "").lower()
    if said and 0 < _pixels(said) < REPORTED_SHARE * wanted:
        words = f"{asked} was asked and the provider reports {said}"
        yield _Found(words, _measured("size", "pixels", wanted, _pixels(said)))
    small = [item for item in delivery.artifacts if 0 < item.width * item.height < share * wanted]
    if small:
        width, height = small[0].width, small[0].height
        words = f"{asked} was asked and {width}x{height} was served"
        yield _Found(words, _measured("size", "pixels", wanted, width * height))


def _pixels(named: str) -> int:
    """Of a frame of 16:9 with that name, or of WIDTHxHEIGHT; 0 = not known."""
    width, _, height = named.partition("x")
    if width.isdecimal() and height.isdecimal():
        return int(width) * int(height)
    side = NAMED_SIDES.get(named) or (int(named[:-1]) if named.endswith("p") and named[:-1].isdecimal() else 0)
    return side * side * 16 // 9


def _of_number(delivery: Delivery) -> Iterator[_Found]:
    made, came = delivery.usage.images, sum(1 for item in delivery.artifacts if item.media_type.startswith("image/"))
    if made is not None and came and made != came:
        yield _Found(f"{made} images reported and {came} delivered", _measured("number", "images", made, came))

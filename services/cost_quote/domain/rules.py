"""Price rules as values.

Laws of this file:
- every amount is a Decimal of the rule's own currency (of credits, where the rule counts in credits);
- what a rule does not name is empty, and empty is never a price (COST-4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

ZERO, ONE = Decimal(0), Decimal(1)


class BillingMode(StrEnum):
    """How a price is charged (COST-1)."""

    PER_SECOND = "per_second"
    PER_REQUEST = "per_request"
    PER_IMAGE = "per_image"
    PER_TOKEN = "per_token"
    PER_CHARACTER = "per_character"
    PER_PAGE = "per_page"


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of the day in UTC, `start` included and `end` not, in minutes; it may cross midnight, and then belongs to
    the day on which it begins. `days`: 0 is Monday; equal ends are the whole day."""

    start: int
    end: int
    days: frozenset[int] = frozenset(range(7))

    def holds(self, at: datetime) -> bool:
        """Whether `at`, aware and in UTC, lies in it."""
        minute, day = at.hour * 60 + at.minute, at.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds while every fact of `when` is as it says, and the time of submission lies in one of `hours` (if any)."""

    when: Mapping[str, Any] = field(default_factory=dict)
    hours: tuple[Window, ...] = ()


ALWAYS = Condition()


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per unit that holds under its condition."""

    rate: Decimal
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Band:
    """One price for a whole range of a field, both ends included (COST-2)."""

    field: str
    low: Decimal
    high: Decimal
    price: Decimal


TOKEN_PRICES = (
    "input", "cached_input", "cache_write", "cache_write_long", "input_audio", "input_image", "output", "reasoning",
    "output_audio", "output_image",
)  # fmt: skip
"""Sorts of tokens that may have a price of their own: `<sort>_per_million`."""


@dataclass(frozen=True, slots=True)
class TokenTier:
    """Rates per million tokens for requests whose context has at most `up_to` tokens (None = no end).

    The whole request is charged at its tier; tiers are never sliced. The first whose condition holds and whose end is
    not passed is taken.
    """

    prices: Mapping[str, Decimal]
    """A figure for every one of `TOKEN_PRICES`."""
    up_to: int | None = None
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Surcharge:
    """`rate` for each of `field` (things in a list, or a number) beyond the first `free`.

    `most` is what is counted where the request does not say the number: a ceiling."""

    field: str
    rate: Decimal
    free: Decimal = ZERO
    most: Decimal | None = None
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class Multiplier:
    """The price times `factor`, while the condition holds: service tiers, off-peak hours, regions."""

    factor: Decimal
    condition: Condition = ALWAYS


@dataclass(frozen=True, slots=True)
class VideoTokens:
    """Seconds of video as tokens: width x height x fps x seconds / 1024, by the pixels of resolution and ratio.

    Seconds of input video (the fact `input_video`, at most `input_most` of them where it is not said) are added where
    `input_given` holds materials, and then `floor` is the least number of tokens.
    """

    fps: Decimal
    frames: Mapping[str, Mapping[str, int]]
    """Resolution -> ratio -> pixels of a frame."""
    default_resolution: str = ""
    default_ratio: str = ""
    input_video: str = ""
    input_given: str = "reference_videos"
    input_most: Decimal | None = None
    floor: Mapping[str, Decimal] = field(default_factory=dict)
    """By resolution; `*` = any other."""


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """Tokens of a picture that is made, by size and quality."""

    sizes: Mapping[str, Mapping[str, int]]


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
    minimum: Decimal = ZERO
    quantity: str = ""
    """The fact that counts the units; empty = the billing mode's own."""
    pixels: bool = False
    """With `per_image`: a unit is a pixel."""
    per: Decimal = ONE
    """Units that one rate buys."""
    round_up_to: Decimal = ZERO
    """Units are charged in started steps of so many; 0 = as they are."""
    least_units: Decimal = ZERO
    most_units: Decimal | None = None
    """What is charged at most where the request leaves the number to the provider."""
    times: str = ""
    """A fact that the whole price is multiplied by: `n`."""
    surcharges: tuple[Surcharge, ...] = ()
    multipliers: tuple[Multiplier, ...] = ()
    video_tokens: VideoTokens | None = None
    image_tokens: ImageTokens | None = None
    input_image_tokens: int | None = None
    """The most that a picture or a sound takes that is read."""
    max_output_tokens: int | None = None
    """The most that the model makes, where a request names no limit."""
    credit: Decimal | None = None
    """The price of a credit, where every other amount of the rule counts credits."""
    whole_credits: bool = False
    until: datetime | None = None
    """No quote from then on; what was quoted before is settled all the same."""
    plain_rate: Decimal | None = None
    """The rate, where a quantity times the rate is all there is to the price."""

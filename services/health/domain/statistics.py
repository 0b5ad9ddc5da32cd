"""Success over a window: counts in slots of time, and how much they prove."""

from dataclasses import dataclass
from datetime import datetime
from math import floor, sqrt

from msgspec import Struct

SLOTS = 60  # a window is counted in this many slots: one second each by default
Z_95 = 1.959963984540054  # two-sided 95 % of the normal distribution


class Slot(Struct, frozen=True):
    """Outcomes of one slot of time, `number` slots after 1970."""

    number: int
    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Figures of a window. The rates are 0..1 and None without samples; low and high bound it at 95 % (Wilson)."""

    good: int
    bad: int
    success_rate: float | None
    low: float | None
    high: float | None

    @property
    def samples(self) -> int:
        """Outcomes in the window."""
        return self.good + self.bad


def _number(at: datetime, window_s: float) -> int:
    return floor(at.timestamp() * SLOTS / window_s)


def recorded(window: tuple[Slot, ...], at: datetime, good: bool, window_s: float) -> tuple[Slot, ...]:
    """The window with one more outcome, in order of time, and without the slots that the newest one pushes out."""
    number = _number(at, window_s)
    if window and window[-1].number <= number:  # nearly always: what ends now is the newest there is
        last = window[-1]
        kept = window
        if last.number == number:
            kept, good_before, bad_before = window[:-1], last.good, last.bad
        else:
            good_before = bad_before = 0
        if kept and kept[0].number <= number - SLOTS:
            kept = tuple([slot for slot in kept if slot.number > number - SLOTS])
        return (*kept, Slot(number, good_before + int(good), bad_before + int(not good)))
    slots = {slot.number: slot for slot in window}
    before = slots.get(number, Slot(number, 0, 0))
    slots[number] = Slot(number, before.good + int(good), before.bad + int(not good))
    oldest = max(slots) - SLOTS
    return tuple(slots[key] for key in sorted(slots) if key > oldest)


def counted(window: tuple[Slot, ...], now: datetime, window_s: float) -> tuple[int, int]:
    """What went well and what did not in the last `window_s` seconds."""
    oldest = _number(now, window_s) - SLOTS
    good = bad = 0
    for slot in window:
        if slot.number > oldest:
            good += slot.good
            bad += slot.bad
    return good, bad


def rates(window: tuple[Slot, ...], now: datetime, window_s: float) -> Rates:
    """The figures of the last `window_s` seconds."""
    good, bad = counted(window, now, window_s)
    if not good + bad:
        return Rates(0, 0, None, None, None)
    low, high = wilson(good, good + bad)
    return Rates(good, bad, good / (good + bad), low, high)


def wilson(good: int, samples: int) -> tuple[float, float]:
    """The 95 % interval of a proportion after Wilson; `samples` must be positive."""
    share = good / samples
    spread = Z_95 * sqrt(share * (1 - share) / samples + Z_95**2 / (4 * samples**2))
    centre, scale = share + Z_95**2 / (2 * samples), 1 + Z_95**2 / samples
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)

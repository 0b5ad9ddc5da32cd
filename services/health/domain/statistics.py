"""Success over a window: counts in slots of time, and how much they prove."""

from dataclasses import dataclass
from datetime import datetime
from math import floor, sqrt

SLOTS = 60  # a window is counted in this many slots: one second each by default
Z_95 = 1.959963984540054  # two-sided 95 % of the normal distribution


@dataclass(frozen=True, slots=True)
class Slot:
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

    @property
    def failure_rate(self) -> float:
        """Failures per outcome, 0 without samples."""
        return self.bad / self.samples if self.samples else 0.0


def _number(at: datetime, window_s: float) -> int:
    return floor(at.timestamp() * SLOTS / window_s)


def recorded(window: tuple[Slot, ...], at: datetime, good: bool, window_s: float) -> tuple[Slot, ...]:
    """The window with one more outcome, in order of time, and without the slots that the newest one pushes out."""
    number = _number(at, window_s)
    slots = {slot.number: slot for slot in window}
    before = slots.get(number, Slot(number, 0, 0))
    slots[number] = Slot(number, before.good + int(good), before.bad + int(not good))
    oldest = max(slots) - SLOTS
    return tuple(slots[key] for key in sorted(slots) if key > oldest)


def rates(window: tuple[Slot, ...], now: datetime, window_s: float) -> Rates:
    """The figures of the last `window_s` seconds."""
    oldest = _number(now, window_s) - SLOTS
    live = [slot for slot in window if slot.number > oldest]
    good, bad = sum(slot.good for slot in live), sum(slot.bad for slot in live)
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

"""Which figures of a model have gone bad like an outage, against its own past (SLO-1, SLO-2). Pure.

Laws of this file:
- the last ones are held against those before, never against a wish: a model that never was better has not fallen;
- few cases are no trend;
- what is slow in the background is simply made later: it counts for no queue time (`Outcome.queue_s` is None).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from services.runs.domain.service_levels import Outcome

LAST, LEAST_BASELINE = 20, 20
STEP, POINTS = 10, 5
"""The way to the newest mean is told by `POINTS` means of as many outcomes, each of which ended `STEP` earlier."""
FALLEN_SHARE = 0.5
SLOWER, SLOWER_BY_S = 4.0, 60.0
DEARER = 1.5


@dataclass(frozen=True, slots=True)
class Measured:
    """What an alert was raised for: `values` are oldest first, the newest is held against `baseline`. `unit` of all:
    `ratio`, `s`, or a currency."""

    figure: str
    unit: str
    baseline: float
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The newest."""
        return self.values[-1]


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of a model that has gone bad."""

    model: str
    measure: Measured


def worsened(outcomes: Sequence[Outcome]) -> tuple[Change, ...]:
    """Every figure of every model that has gone bad; `outcomes` are in the order of time.

    The mean of the last `LAST` is held against that of at least `LEAST_BASELINE` before them: a first-pass yield below
    half of it, a queue time four times as long and a minute longer, a second that costs half as much again.
    """
    return tuple(
        Change(model, measure)
        for model in dict.fromkeys(outcome.model for outcome in outcomes if outcome.model)
        for measure in _measured([outcome for outcome in outcomes if outcome.model == model])
    )


def _measured(outcomes: Sequence[Outcome]) -> Iterator[Measured]:
    passes = [float(outcome.first_pass) for outcome in outcomes]
    queues = [outcome.queue_s for outcome in outcomes if outcome.queue_s is not None]
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    yield from _gone_bad("first_pass_yield", "ratio", passes, lambda now, then: now < FALLEN_SHARE * then)
    yield from _gone_bad("queue_time", "s", queues, lambda now, then: now > max(SLOWER * then, then + SLOWER_BY_S))
    if costs:
        currency = costs[-1].currency  # amounts are never mixed
        each = [float(cost.amount) for cost in costs if cost.currency == currency]
        yield from _gone_bad("cost_per_usable_second", currency, each, lambda now, then: now > DEARER * then)


def _gone_bad(
    figure: str, unit: str, values: Sequence[float], bad: Callable[[float, float], bool]
) -> Iterator[Measured]:
    before, last = values[:-LAST], values[-LAST:]
    if len(before) >= LEAST_BASELINE and bad(fmean(last), fmean(before)):
        yield Measured(figure, unit, fmean(before), tuple(_way(values)))


def _way(values: Sequence[float]) -> Iterator[float]:
    for back in range(POINTS - 1, -1, -1):
        end = len(values) - back * STEP
        if end >= LAST:
            yield fmean(values[end - LAST : end])

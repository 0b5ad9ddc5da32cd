"""The figure that an alert was raised for, what it was compared with, and where it goes (SLO-2). Pure."""

from dataclasses import dataclass, replace
from statistics import fmean

from services.routing.domain.decision import AlertDraft

LONGEST = 20
RECENT = 4
STEADY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Measure:
    """`values` are oldest first, at most `LONGEST`: the newest is what raised the alert last. `baseline` is in the same
    `unit`: `ratio`, `s`, `pixels`, `images`, or a currency."""

    figure: str
    unit: str
    baseline: float
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MeasuredDraft(AlertDraft):
    """An alert that was worked out from a figure."""

    measure: Measure | None = None


def continued(before: Measure | None, now: Measure | None) -> Measure | None:
    """What an open alert carries once it is raised again: its own values with the newest one; another figure begins
    anew, and who measured nothing leaves what was measured."""
    if before is None or now is None:
        return now or before
    if (before.figure, before.unit) != (now.figure, now.unit):
        return now
    return replace(now, values=(*before.values, now.values[-1])[-LONGEST:])


def trend(measure: Measure) -> str:
    """`rising`, `falling` or `steady`: the newest value against the few before it, or against the baseline while there
    are none; within a tenth of the baseline is steady."""
    newest, earlier = measure.values[-1], measure.values[-1 - RECENT : -1]
    before = fmean(earlier) if earlier else measure.baseline
    if abs(newest - before) <= STEADY_SHARE * abs(measure.baseline):
        return "steady"
    return "rising" if newest > before else "falling"

"""The public JSON shapes of alerts."""

from datetime import datetime

from msgspec import Struct


class Measure(Struct, frozen=True):
    """The figure that an alert was raised for. `value` is the newest of `values`, which are oldest first; `trend` is
    `rising`, `falling` or `steady`. `unit`, also of `baseline`: `ratio`, `s`, `pixels`, `images` or a currency."""

    figure: str
    unit: str
    value: float
    baseline: float
    trend: str
    values: list[float]


class Alert(Struct, frozen=True):
    """One alert for operators. `measure` is null where it tells of no figure."""

    id: str
    kind: str
    severity: str
    subject: str
    message: str
    cause: str | None
    link: str | None
    created_at: datetime | None
    acknowledged_at: datetime | None
    count: int
    measure: Measure | None


class AlertList(Struct, frozen=True):
    """Alerts: open ones first, the worst consequence first, then the newest."""

    alerts: list[Alert]
    next_page_token: str

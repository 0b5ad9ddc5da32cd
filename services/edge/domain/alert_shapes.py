"""The public JSON shapes of alerts."""

from datetime import datetime

from msgspec import Struct


class Alert(Struct, frozen=True):
    """One alert for operators."""

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


class AlertList(Struct, frozen=True):
    """Alerts, newest first."""

    alerts: list[Alert]
    next_page_token: str

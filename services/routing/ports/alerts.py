"""Alerts: durable records for operators (OPS-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.routing.domain.measure import Measure


@dataclass(frozen=True, slots=True)
class Alert:
    """A durable alert. `key` is its dedupe key: while it is not acknowledged, raising it again only counts.

    Where it is `once_a_cause`, it counts causes: several processes see the same matter, and a new one sees it again.
    `measure` None: nothing was measured.
    """

    id: str
    key: str
    kind: str
    severity: str
    subject: str
    message: str
    cause: str
    link: str
    created_at: datetime
    acknowledged_at: datetime | None = None
    count: int = 1
    measure: Measure | None = None
    once_a_cause: bool = False


@dataclass(frozen=True, slots=True)
class AlertQuery:
    """Which alerts; empty fields ask for nothing."""

    kind: str = ""
    subject: str = ""
    open_only: bool = False
    page_size: int = 100
    page_token: str = ""


class AlertStore(Protocol):
    """Alerts, deduplicated by key while not acknowledged."""

    async def raise_alerts(self, raised: Sequence[Alert]) -> None:
        """Keep new ones; count those whose key is open, which take the newest words and go on measuring. One that is
        `once_a_cause` and open with that cause stays as it is."""
        ...

    async def alerts(self, query: AlertQuery) -> tuple[tuple[Alert, ...], str]:
        """A page and the token of the next one: open ones first, the worst consequence first (`consequence`), then the
        newest."""
        ...

    async def acknowledge(self, alert_id: str, now: datetime) -> Alert | None:
        """The alert with the time of its first acknowledgement; None if there is none of that id."""
        ...

"""Alerts in memory: one open one for each dedupe key."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from services.routing.domain.alert_kinds import consequence
from services.routing.domain.measure import continued
from services.routing.ports.alerts import Alert, AlertQuery
from services.routing.store.paging import Place, place_in, token_after


class MemoryAlerts:
    """`AlertStore` over a dictionary."""

    _alerts: dict[str, Alert]

    async def raise_alerts(self, raised: Sequence[Alert]) -> None:
        """See the port."""
        self._raise(raised)

    async def alerts(self, query: AlertQuery) -> tuple[tuple[Alert, ...], str]:
        """See the port."""
        after = place_in(query.page_token)
        found = [
            alert
            for alert in _in_order(self._alerts.values())
            if (not query.kind or alert.kind == query.kind)
            and (not query.subject or alert.subject == query.subject)
            and not (query.open_only and alert.acknowledged_at)
            and (after is None or _behind(_place(alert), after))
        ]
        page = tuple(found[: query.page_size])
        return page, token_after(_place(page[-1])) if len(found) > len(page) else ""

    async def acknowledge(self, alert_id: str, now: datetime) -> Alert | None:
        """See the port."""
        known = self._alerts.get(alert_id)
        if known is not None and known.acknowledged_at is None:
            known = self._alerts[alert_id] = replace(known, acknowledged_at=now)
        return known

    def _raise(self, raised: Sequence[Alert]) -> None:
        for alert in raised:
            known = next((a for a in self._alerts.values() if a.key == alert.key and a.acknowledged_at is None), None)
            if known is None:
                self._alerts[alert.id] = replace(alert, once_a_cause=False)  # how it is raised is not kept
            elif not alert.once_a_cause or alert.cause != known.cause:
                self._alerts[known.id] = replace(
                    known,
                    count=known.count + 1,
                    message=alert.message,
                    cause=alert.cause,
                    measure=continued(known.measure, alert.measure),
                )


def _in_order(alerts: Iterable[Alert]) -> list[Alert]:
    """Two of its keys rise, two fall: the second pass keeps what the first has ordered."""
    newest_first = sorted(alerts, key=lambda alert: _place(alert)[2:], reverse=True)
    return sorted(newest_first, key=lambda alert: _place(alert)[:2])


def _behind(place: Place, other: Place) -> bool:
    return place[:2] > other[:2] or (place[:2] == other[:2] and place[2:] < other[2:])


def _place(alert: Alert) -> Place:
    return alert.acknowledged_at is not None, consequence(alert.kind), alert.created_at, alert.id

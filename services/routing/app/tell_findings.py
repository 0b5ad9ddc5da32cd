"""Findings of the running checks as durable alerts: each told once in a while for as long as it stands (OPS-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.routing.app.desk import Desk, alerts_of
from services.routing.domain.decision import AlertDraft

AGAIN = timedelta(minutes=10)
MOST = 20
"""At most so many are told at once; the next check goes on with the others."""


@dataclass(frozen=True, slots=True)
class Told:
    """One alert to be: `sort` keeps findings of one subject apart."""

    draft: AlertDraft
    sort: str
    link: str = ""


class Teller:
    """Remembers when this process told what, so that a finding that stands is no flood. What it forgets with its end
    the store's dedupe key makes good: an open alert only counts."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._at: dict[tuple[str, str], datetime] = {}

    async def tell(self, found: Sequence[Told]) -> None:
        """Raise what was not told lately."""
        now = self._desk.now()
        self._at = {key: at for key, at in self._at.items() if now - at < AGAIN}
        news = [item for item in found if (item.sort, item.draft.subject) not in self._at][:MOST]
        for item in news:
            await self._desk.store.raise_alerts(alerts_of(self._desk, (item.draft,), item.link, suffix=item.sort))
            self._at[item.sort, item.draft.subject] = now

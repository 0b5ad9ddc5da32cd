"""Operators are told of what was committed (OPS-6): a notice never undoes it, and is not lost while nobody takes it."""

import logging
from collections import deque

from libs.faults.fault import Fault
from services.runs.domain.alerting import Alert
from services.runs.ports import AlertBook

MOST_UNTOLD = 1_000
"""Of more than these the oldest are forgotten: they are in the log, and what they tell of is in the events."""

log = logging.getLogger(__name__)


class Telling:
    """Implements `ports.Alerts` over the book in which they are kept."""

    def __init__(self, book: AlertBook) -> None:
        self._book = book
        self._untold: deque[tuple[Alert, str]] = deque(maxlen=MOST_UNTOLD)

    async def tell(self, alert: Alert, link: str) -> None:
        """See the port."""
        if not await self._kept(alert, link):
            self._untold.append((alert, link))

    async def again(self) -> None:
        """Tell what was not taken, the oldest first, for as long as it is."""
        while self._untold:
            first = self._untold.popleft()
            if not await self._kept(*first):
                self._untold.appendleft(first)
                return

    async def _kept(self, alert: Alert, link: str) -> bool:
        """False if it is worth another try: a book that is away is, one that refuses the words is not."""
        try:
            await self._book.keep(alert, link)
        except Fault as fault:
            log.warning("alert_not_told", extra={"kind": alert.kind, "subject": alert.subject, "code": fault.code})
            return fault.code == "validation_failed"
        return True

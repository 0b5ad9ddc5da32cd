"""Ends calls whose process died: their callers are gone, and what became of their last try nobody knows.

A call that lives ends long before its last try is overdue. What is closed here is closed as unknown: the try may have
been charged, and an operator is told so (COST-12). Nothing is sent again.
"""

from datetime import datetime, timedelta

from libs.faults.fault import Fault
from services.routing.app.calls.call_desk import CallDesk
from services.routing.app.desk import alerts_of, failure_of
from services.routing.domain.calls.call import Call, orphaned
from services.routing.domain.decision import AlertDraft

BATCH = 100
FORGOTTEN_AT_ONCE = 1000
LAG_S = 60.0
"""Clocks of two processes differ by less."""
SLICE_S = 3600.0
"""Of the past is looked at in one go, and twice as much in the next where that was quick: most weeks are quiet ones."""
LONGEST_SLICE_S = 7 * 86_400.0
QUICK_S = 0.05


class EndOrphans:
    """Walks once over the past that is still kept, and then along with the present."""

    def __init__(self, desk: CallDesk) -> None:
        self._desk = desk
        self._seen: datetime | None = None
        self._slice_s = SLICE_S

    async def __call__(self) -> bool:
        """End those of the next stretch of time. True when there is more."""
        desk, settings = self._desk, self._desk.settings
        now = desk.now()
        since = self._seen or now - timedelta(seconds=settings.call_retention_s)
        slice_s, self._slice_s = self._slice_s, SLICE_S  # also where it takes longer than the store permits
        until = min(since + timedelta(seconds=slice_s), now - timedelta(seconds=LAG_S))
        if until <= since:
            return False
        began = desk.world.clock.monotonic()
        found = await desk.store.overdue(since, until, BATCH)
        if desk.world.clock.monotonic() - began < QUICK_S:
            self._slice_s = min(LONGEST_SLICE_S, slice_s * 2)
        for call in found:
            await self._end(call, now)
        if len(found) < BATCH:
            self._seen = until
        return len(found) == BATCH or until < now - timedelta(seconds=LAG_S)

    async def _end(self, call: Call, now: datetime) -> None:
        last = call.tries[-1]
        text = f"the process that made call {call.id} ended before it; what became of try {last.id} is not known"
        ended = orphaned(call, failure_of(Fault.of("submission_unknown", text)), now)
        charge = f"up to {last.quote.words()} may have been charged at {last.supply}"
        draft = AlertDraft("cost_anomaly", "high", last.id, charge, cause=call.id)
        # Told first: whoever dies in between has it found again, and the same alert is only counted.
        await self._desk.alerts.raise_alerts(alerts_of(self._desk, (draft,), f"/v1/calls/{call.id}"))
        await self._desk.store.end(ended, ())


async def forget_calls(desk: CallDesk) -> bool:
    """Remove what has been kept for its time. True when there may be more."""
    now = desk.now()
    before = now - timedelta(seconds=desk.settings.call_retention_s)
    return await desk.store.forget(before, now, FORGOTTEN_AT_ONCE) >= FORGOTTEN_AT_ONCE

"""Counts the life of the database on, as one of any number of processes: see `domain.silence`."""

from services.routing.app.desk import Desk
from services.routing.domain.silence import PULSE_S


class KeepPulse:
    """Belongs to one process. What the store said last, and when by the clock that never jumps."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seen: int | None = None
        self._seen_at = 0.0

    async def tick(self) -> None:
        """One pulse, if it stood still since this process looked and nobody else was first."""
        monotonic = self._desk.world.clock.monotonic
        if self._seen is not None and monotonic() - self._seen_at < PULSE_S:
            return
        self._seen = await self._desk.store.pulse(self._seen)
        self._seen_at = monotonic()

"""The look at health and capacity that decisions of calls are made over.

A look may serve several turns that follow one another at once: what this process has chosen since is counted in it, and
a reservation decides in any case, with health as it is then. But nobody is turned away over an old look: whoever is not
chosen is decided again over a new one.
"""

import asyncio

from services.routing.app.gather import Views
from services.routing.ports.calls import CallCapacity, CallHealth

NEVER = float("-inf")


class Looking:
    """Takes a look, or lends the last one for `fresh_s` seconds."""

    def __init__(self, health: CallHealth, capacity: CallCapacity, fresh_s: float) -> None:
        self._health = health
        self._capacity = capacity
        self._fresh_s = fresh_s
        self._views: Views | None = None
        self._looked_at = NEVER

    async def recent(self, now_s: float) -> tuple[Views, bool]:
        """The views, and whether they are new. Faults of either peer pass through."""
        if self._views is not None and now_s - self._looked_at < self._fresh_s:
            return self._views, False
        return await self.anew(now_s), True

    def forget(self) -> None:
        """The last look is not lent any more."""
        self._views = None

    async def anew(self, now_s: float) -> Views:
        """As it is now."""
        self._views = None
        health, (kinds, channels, supplies) = await asyncio.gather(self._health.snapshot(), self._capacity.snapshot())
        self._views = views = Views(*health, dict(kinds), dict(channels), dict(supplies))
        self._looked_at = now_s
        return views

"""Outcomes are kept only as long as their Attempts may still report."""

from datetime import timedelta

from libs.kernel.clock import Clock
from services.health.ports import HealthStore


class ForgetOutcomes:
    """Deletes what is older than `keep_s` seconds."""

    def __init__(self, store: HealthStore, clock: Clock, keep_s: float) -> None:
        self._store = store
        self._clock = clock
        self._keep = timedelta(seconds=keep_s)

    async def __call__(self) -> None:
        """One round."""
        await self._store.forget_outcomes(self._clock.now() - self._keep)

"""Callbacks and secrets in memory: the same contract, gone with the process."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from services.runs.domain.callbacks import Callback, CallbackState
from services.runs.store.memory import MemoryRuns


class MemoryCallbacks:
    """Implements `ports.Callbacks` over what the store of Runs has put into its outbox."""

    def __init__(self, runs: MemoryRuns) -> None:
        self._kept = runs.outbox

    async def claim(self, now: datetime, until: datetime, busy: Sequence[str], size: int) -> list[Callback]:
        """See the port."""
        waiting = (one for one in self._kept.values() if one.state is CallbackState.PENDING and one.next_at <= now)
        due = sorted((one for one in waiting if one.tenant not in busy), key=lambda one: (one.next_at, one.id))
        claimed = [replace(one, attempts=one.attempts + 1, next_at=until) for one in due[:size]]
        self._kept.update((one.id, one) for one in claimed)
        return claimed

    async def record(self, callback: Callback) -> bool:
        """See the port."""
        present = self._kept[callback.id]
        if present.attempts != callback.attempts or present.state is not CallbackState.PENDING:
            return False
        self._kept[callback.id] = callback
        return True

    async def of_run(self, run_id: str) -> list[Callback]:
        """See the port."""
        found = (one for one in self._kept.values() if one.run_id == run_id)
        return sorted(found, key=lambda one: one.id, reverse=True)


class MemorySecrets:
    """Implements `ports.WebhookSecrets`."""

    def __init__(self) -> None:
        self._kept: dict[str, list[str]] = {}

    async def add(self, tenant: str, secret_id: str, text: str, now: datetime) -> None:
        """See the port."""
        self._kept.setdefault(tenant, []).insert(0, text)

    async def of(self, tenant: str, size: int) -> list[str]:
        """See the port."""
        return self._kept.get(tenant, [])[:size]

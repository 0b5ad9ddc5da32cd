"""The running proof that no slot is held for nobody: capacity's leases against the Attempts that hold them (CAP-2)."""

from datetime import timedelta

from services.routing.app.desk import Desk
from services.routing.app.tell_findings import Teller, Told
from services.routing.domain.decision import AlertDraft

BATCH = 2000


class CheckLeases:
    """Nobody renews the slot of an Attempt that has ended, or never was: it lapses within a time to live. One that is
    in force later than that, with time for a renewal that was under way, is leaked."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._teller = Teller(desk)

    async def __call__(self) -> None:
        """Compare once."""
        settings = self._desk.settings
        since = self._desk.now() - timedelta(seconds=settings.capacity_ttl_s + settings.peer_timeout_s)
        old = [lease_id for lease_id, reserved_at in await self._desk.capacity.held() if reserved_at < since]
        found: list[Told] = []
        for start in range(0, len(old), BATCH):
            unheld = await self._desk.store.unheld(old[start : start + BATCH], since)
            found += [_told(lease_id, task_id) for lease_id, task_id in sorted(unheld.items())]
        await self._teller.tell(found)


def _told(lease_id: str, task_id: str) -> Told:
    whose = f"whose attempt has ended (task {task_id})" if task_id else "of no attempt"
    text = f"Capacity still holds the slot {lease_id}, {whose}: it should have lapsed."
    draft = AlertDraft("ledger_mismatch", "high", lease_id, text, cause="leaked lease")
    return Told(draft, "leaked_lease", f"/v1/tasks/{task_id}" if task_id else "/v1/operator/capacity")

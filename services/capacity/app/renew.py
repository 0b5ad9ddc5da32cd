"""Prolongs the leases of one process in one go."""

from collections.abc import Sequence
from datetime import timedelta

from libs.faults.fault import Fault
from services.capacity.app.reserve import check_ttl
from services.capacity.domain.leases import Lease
from services.capacity.ports import CapacityStore, Renewal

BATCH_MAX = 10_000


class Renew:
    """What lapsed is told as lost; it never comes back."""

    def __init__(self, store: CapacityStore) -> None:
        self._store = store

    async def __call__(
        self, holder: str, lease_ids: Sequence[str], ttl: timedelta, taught: Sequence[Lease] = ()
    ) -> Renewal:
        """The renewed and the lost, each id once. Fault `validation_failed`."""
        if not holder:
            raise Fault.invalid(("/holder", "is required"))
        if len(lease_ids) > BATCH_MAX:
            raise Fault.invalid(("/lease_ids", f"holds more than {BATCH_MAX} ids"))
        check_ttl(ttl)
        if not lease_ids:
            return Renewal((), ())
        return await self._store.renew(holder, tuple(dict.fromkeys(lease_ids)), ttl, taught)

"""One slot on a Channel and a Supply together, or a reason why not."""

from datetime import timedelta

from libs.faults.fault import Fault
from libs.telemetry import metrics, names
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Refusal
from services.capacity.ports import CapacityStore

TTL_MAX = timedelta(hours=24)


def check_ttl(ttl: timedelta) -> None:
    """Fault `validation_failed` for a time to live that no lease can have."""
    if not timedelta(0) < ttl <= TTL_MAX:
        raise Fault.invalid(("/ttl", "must be positive and at most 24 hours"))


class Reserve:
    """Checks the request, lets the store decide."""

    def __init__(self, store: CapacityStore) -> None:
        self._store = store

    async def __call__(self, request: Request) -> Lease | Refusal:
        """The lease, or the refusal. Faults as in the port, and `validation_failed`."""
        _check(request)
        outcome = await self._store.reserve(request)
        result, gate = ("refused", outcome.gate.value) if isinstance(outcome, Refusal) else ("admitted", "")
        metrics.PROCESS.counter(names.RESERVATIONS, result=result, gate=gate).inc()
        return outcome


def _check(request: Request) -> None:
    texts = ("lease_id", "holder", "kind", "channel_id", "supply_id")
    missing = [(f"/{name}", "is required") for name in texts if not getattr(request, name)]
    if missing:
        raise Fault.invalid(*missing)
    if request.tokens < 0:
        raise Fault.invalid(("/tokens", "must not be negative"))
    check_ttl(request.ttl)

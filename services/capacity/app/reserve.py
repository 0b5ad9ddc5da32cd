"""One slot on a Channel and a Supply together, or a reason why not."""

import asyncio
from collections.abc import Sequence
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
        return (await self.each((request,)))[0]

    async def each(self, requests: Sequence[Request]) -> list[Lease | Refusal]:
        """Each as if alone, in their order. Raises the first fault, when none is under way any more."""
        faults = [_fault(request) for request in requests]
        begun = [self._store.reserve(item) for item, fault in zip(requests, faults, strict=True) if fault is None]
        decided = iter(await asyncio.gather(*begun, return_exceptions=True))
        outcomes = [next(decided) if fault is None else fault for fault in faults]
        for outcome in outcomes:
            if not isinstance(outcome, BaseException):
                _count(outcome)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes  # type: ignore[return-value]  # none of them is an exception


def _count(outcome: Lease | Refusal) -> None:
    result, gate = ("refused", outcome.gate.value) if isinstance(outcome, Refusal) else ("admitted", "")
    metrics.PROCESS.counter(names.RESERVATIONS, result=result, gate=gate).inc()


def _fault(request: Request) -> Fault | None:
    try:
        _check(request)
    except Fault as fault:
        return fault
    return None


def _check(request: Request) -> None:
    texts = ("lease_id", "holder", "kind", "channel_id", "supply_id")
    missing = [(f"/{name}", "is required") for name in texts if not getattr(request, name)]
    if missing:
        raise Fault.invalid(*missing)
    if request.tokens < 0:
        raise Fault.invalid(("/tokens", "must not be negative"))
    check_ttl(request.ttl)

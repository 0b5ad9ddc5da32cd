"""What a holder may do with a lease after the reservation. Pure; every backend answers as these functions do."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from libs.faults.fault import Fault
from services.capacity.domain.leases import Lease, Request


def repeated(lease: Lease, request: Request, now: datetime) -> Lease:
    """The answer to a second reservation with one id: the same lease, as it is (CAP-2).

    Faults: `lease_not_held` where another holds it, `already_exists` where the id was used for another Supply, and
    `lease_expired` where it has ended: an id never holds twice.
    """
    if lease.holder != request.holder:
        raise Fault.of("lease_not_held", f"lease '{lease.id}' belongs to another holder")
    if (lease.kind, lease.channel_id, lease.supply_id) != (request.kind, request.channel_id, request.supply_id):
        raise Fault.of("already_exists", f"lease '{lease.id}' was taken for supply '{lease.supply_id}'")
    if not lease.live(now):
        raise Fault.of("lease_expired", f"lease '{lease.id}' has ended; reserve under a new id")
    return lease


def renewed(lease: Lease | None, holder: str, ttl: timedelta, now: datetime) -> Lease | None:
    """The lease with its new end, or None where authority is lost: lapsed, released, another's, unknown."""
    if lease is None or lease.holder != holder or not lease.live(now):
        return None
    return replace(lease, expires_at=now + ttl)


def released(lease: Lease | None, holder: str, used_tokens: int | None, now: datetime) -> Lease | None:
    """The lease given back, with the tokens really used; None where there was nothing to give back."""
    if lease is None or lease.holder != holder or not lease.live(now):
        return None
    return replace(lease, ended_at=now, released=True, used_tokens=used_tokens)


def lapsed(lease: Lease, now: datetime) -> Lease:
    """The same lease, marked as ended where its time is over."""
    if lease.ended_at is None and lease.expires_at <= now:
        return replace(lease, ended_at=lease.expires_at)
    return lease

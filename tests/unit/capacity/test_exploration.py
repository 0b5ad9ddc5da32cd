"""VER-2: every small history of the ledger is tried, and every known way to break it is caught."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec import structs

from services.capacity.domain import ledger
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.ledger import Gate, Refusal
from services.capacity.domain.levels import Kind, Level
from tests.unit.capacity.exploration import Rules, explore


def test_no_history_breaks_the_ledger() -> None:
    """VER-2, CAP-1, CAP-2, CAP-4, CAP-4a, CAP-7: no history passes a shut gate or is refused by open ones.

    Also: the gate that is named is shut, an ended lease is never renewed or released, another's never, an old view of
    health never admitted, and a wait hint is neither too late nor of no use.
    """
    nodes, breach = explore()
    assert breach == ""
    assert nodes > 3000


Decision = Refusal | None


def half(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Looks at the Supply alone."""
    supply = [replace(level, concurrency=0) if level.subject.kind is Kind.CHANNEL else level for level in levels]
    return ledger.decide(supply, leases, request, now)


def epoch_blind(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Lets old work block the probe."""
    aged = [structs.replace(lease, supply_epoch=request.supply_health.epoch) for lease in leases]
    return ledger.decide(levels, aged, request, now)


def undying(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Counts lapsed leases for ever."""
    kept = [structs.replace(lease, expires_at=now + timedelta(days=1)) for lease in leases]
    return ledger.decide(levels, kept, request, now)


def generous(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Admits one too many."""
    more = [replace(level, concurrency=level.concurrency + 1) for level in levels]
    return ledger.decide(more, leases, request, now)


def gullible(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Believes whatever view of health it is shown."""
    told = [
        level if level.subject.kind is Kind.CHANNEL else replace(level, health=request.supply_health)
        for level in levels
    ]
    return ledger.decide(told, leases, request, now)


def unhealthy(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Knows no limit by health."""
    free = [
        replace(level, health=structs.replace(level.health, limit=None)) if level.health is not None else level
        for level in levels
    ]
    return ledger.decide(free, leases, request, now)


def unpaced(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Knows no adaptive limit."""
    free = [replace(level, pace=replace(level.pace, limit=None)) for level in levels]
    return ledger.decide(free, leases, request, now)


def thawed(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Asks a provider that asked not to be asked."""
    free = [replace(level, pace=replace(level.pace, frozen_until=None)) for level in levels]
    return ledger.decide(free, leases, request, now)


def icy(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Never thaws."""
    cold = [
        replace(level, pace=replace(level.pace, frozen_until=now + timedelta(seconds=30)))
        if level.pace.frozen_until
        else level
        for level in levels
    ]
    return ledger.decide(cold, leases, request, now)


def rounding(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Takes a slot and a half for two."""
    more = [
        replace(level, pace=replace(level.pace, limit=level.pace.limit + 500)) if level.pace.limit else level
        for level in levels
    ]
    return ledger.decide(more, leases, request, now)


def forgetful(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Forgets released and lapsed leases in its window."""
    return ledger.decide(levels, [lease for lease in leases if lease.live(now)], request, now)


def mute(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Never says when to come back."""
    refusal = ledger.decide(levels, leases, request, now)
    return None if refusal is None else replace(refusal, retry_at=None)


def early(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Calls back too soon."""
    refusal = ledger.decide(levels, leases, request, now)
    if refusal is None or refusal.retry_at is None:
        return refusal
    return replace(refusal, retry_at=refusal.retry_at - timedelta(seconds=30))


def late(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Calls back a whole window from now."""
    refusal = ledger.decide(levels, leases, request, now)
    if refusal is None or refusal.retry_at is None:
        return refusal
    return replace(refusal, retry_at=now + timedelta(seconds=90))


def misnaming(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Decision:
    """Blames health for everything."""
    refusal = ledger.decide(levels, leases, request, now)
    return None if refusal is None else replace(refusal, gate=Gate.HEALTH)


def raising(lease: Lease | None, holder: str, ttl: timedelta, now: datetime) -> Lease | None:
    """Renews the dead."""
    return None if lease is None or lease.holder != holder else structs.replace(lease, expires_at=now + ttl)


def anyone(lease: Lease | None, holder: str, ttl: timedelta, now: datetime) -> Lease | None:
    """Renews for whoever asks."""
    return None if lease is None or not lease.live(now) else structs.replace(lease, expires_at=now + ttl)


def twice(lease: Lease | None, holder: str, used_tokens: int | None, now: datetime) -> Lease | None:
    """Releases what has ended."""
    return None if lease is None or lease.holder != holder else structs.replace(lease, ended_at=now, released=True)


ADMITTED = "admitted through a shut gate"
REFUSED = "refused with every gate open"
MUTANTS: list[tuple[Rules, str]] = [
    (Rules(decide=half), ADMITTED),
    (Rules(decide=generous), ADMITTED),
    (Rules(decide=unhealthy), ADMITTED),
    (Rules(decide=unpaced), ADMITTED),
    (Rules(decide=rounding), ADMITTED),
    (Rules(decide=thawed), ADMITTED),
    (Rules(decide=icy), "too early"),
    (Rules(decide=forgetful), "wait hint"),
    (Rules(decide=undying), REFUSED),
    (Rules(decide=epoch_blind), REFUSED),
    (Rules(decide=gullible), "an old view of health was admitted"),
    (Rules(decide=mute), "none where it does"),
    (Rules(decide=early), "too early"),
    (Rules(decide=late), "before the hint"),
    (Rules(decide=misnaming), "the gate that was named is open"),
    (Rules(renewed=raising), "had ended was renewed"),
    (Rules(renewed=anyone), "another's lease"),
    (Rules(released=twice), "had ended was released"),
]


@pytest.mark.parametrize("rules, law", MUTANTS)
def test_a_wrong_ledger_is_caught(rules: Rules, law: str) -> None:
    """VER-2: each known mistake in the ledger breaks the law that it should."""
    nodes, breach = explore(rules)
    assert law in breach, f"went unnoticed in {nodes} nodes"

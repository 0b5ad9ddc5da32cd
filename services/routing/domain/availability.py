"""Whether a Supply may and can take an Attempt now: administrative state, health, capacity (SEL-4, SEL-8, SEL-9).

A Channel stands in for no Supply and no Supply for a Channel: both are asked, the Channel first. The answer for the
first reason that holds is a `Drop`; its `waits` says whether time alone may cure it (TIER-1a):

| reason | step | waits |
|---|---|---|
| `draining`, `disabled` by an operator | SEL-4 | no |
| `disabled` in health | SEL-8 | no |
| `circuit_open`, `probe_busy` | SEL-8 | heal |
| `concurrency`, `recovering`, `adaptive`, `frozen`, `requests`, `tokens` | SEL-9 | full |
| `retry_after` | ATT-3a | later |
"""

from datetime import UTC, datetime
from typing import NamedTuple

from services.routing.domain.catalog import Admin, Channel, Limits, Supply
from services.routing.domain.decision import CapacityView, HealthView

NEVER, HEAL, FULL, LATER = "", "heal", "full", "later"
HEALTH_RANKS = {"healthy": 0, "degraded": 1, "recovering": 2, "probing": 3}
UNHEALTHY = len(HEALTH_RANKS)
ILL = frozenset({"disabled", "circuit_open", "probing"})
"""States in which SEL-8 may drop."""
HEALTHY = HealthView()
ENABLED = Admin.ENABLED
_new = tuple.__new__


class Drop(NamedTuple):
    """Why a Supply is no candidate."""

    step: str
    reason: str
    figures: str = ""
    waits: str = NEVER
    retry_at: datetime | None = None


class Door(NamedTuple):
    """What health and capacity say of one object: the drops of SEL-8 and SEL-9, and its free slots."""

    ill: Drop | None
    full: Drop | None
    slots: int | None


def door(sort: str, name: str, health: HealthView, capacity: CapacityView, now: datetime) -> Door:
    """All three at once: every Channel of a decision is asked, and every Supply that something is wrong with. `sort`
    and `name` are put together where there is something to tell."""
    configured, used, current, rpm, rpm_used, tpm, tpm_used, adaptive, frozen_until, _ = capacity
    slots = None
    if configured:
        slots = configured - used if used < configured else 0
    if health.limit is not None:
        left = health.limit - current if current < health.limit else 0
        slots = left if slots is None or left < slots else slots
    if adaptive is not None:
        left = adaptive - used if used < adaptive else 0
        slots = left if slots is None or left < slots else slots
    closed = slots == 0 or rpm_used >= rpm > 0 or tpm_used >= tpm > 0 or frozen_until is not None
    ill = unhealthy(sort + name, health, capacity) if health.state in ILL else None
    return _new(Door, (ill, full(sort + name, health, capacity, now) if closed else None, slots))


def forbidden(channel: Channel, supply: Supply) -> Drop | None:
    """SEL-4: what the operator said."""
    for name, admin in ((f"channel {channel.id}", channel.admin), (f"supply {supply.id}", supply.admin)):
        if admin is not ENABLED:
            return Drop("SEL-4", str(admin), f"{name} is {admin}")
    return None


def unhealthy(name: str, health: HealthView, capacity: CapacityView) -> Drop | None:
    """SEL-8: what the breaker says of one object; `name` is for example `supply ark-main/seedance`."""
    if health.state == "disabled":
        return Drop("SEL-8", "disabled", f"{name} is disabled")
    if health.state == "circuit_open":
        until = f" until {clock_time(health.cooldown_until)}" if health.cooldown_until else ""
        return Drop("SEL-8", "circuit_open", f"{name} circuit_open{until}", HEAL, health.cooldown_until)
    if health.state == "probing" and capacity.in_use_current_epoch >= probe_slots(health):
        used = capacity.in_use_current_epoch
        return Drop("SEL-8", "probe_busy", f"{name} probing {used} of {probe_slots(health)}", HEAL)
    return None


def probe_slots(health: HealthView) -> int:
    """Slots of a probing object: one, unless health says otherwise (HLT-2)."""
    return 1 if health.limit is None else health.limit


def full(name: str, health: HealthView, capacity: CapacityView, now: datetime) -> Drop | None:
    """SEL-9: whether a gate of one object is closed. Leases of older health epochs count only against the
    configured and the adaptive limit (CAP-4a). A freeze is named last: unlike the others it opens by time alone."""
    if capacity.configured and capacity.in_use >= capacity.configured:
        return _full(name, "concurrency", capacity.in_use, capacity.configured)
    if health.limit is not None and capacity.in_use_current_epoch >= health.limit:
        return _full(name, "recovering", capacity.in_use_current_epoch, health.limit)
    if capacity.adaptive is not None and capacity.in_use >= capacity.adaptive:
        return _full(name, "adaptive", capacity.in_use, capacity.adaptive)
    if capacity.rpm and capacity.rpm_used >= capacity.rpm:
        return _full(name, "requests", capacity.rpm_used, capacity.rpm, capacity.room_at)
    if capacity.tpm and capacity.tpm_used >= capacity.tpm:
        return _full(name, "tokens", capacity.tpm_used, capacity.tpm, capacity.room_at)
    if capacity.frozen_until is not None and now < capacity.frozen_until:
        words = gate_in_words(name, "frozen", 0, 0, capacity.frozen_until)
        return Drop("SEL-9", "frozen", words, FULL, capacity.frozen_until)
    return None


def _full(name: str, gate: str, used: int, limit: int, retry_at: datetime | None = None) -> Drop:
    return Drop("SEL-9", gate, gate_in_words(name, gate, used, limit), FULL, retry_at)


def gate_in_words(name: str, gate: str, used: int, limit: int, until: datetime | None = None) -> str:
    """A closed gate of capacity as operators read it (ATT-10); `name` is for example `supply ark-main/seedance`."""
    when = f" until {clock_time(until)}" if until else ""
    if gate == "adaptive":
        return f"{name} adaptive {used} of {limit}: its provider was congested, slots come back with successes"
    if gate == "frozen":
        return f"{name} frozen{when}: its provider asked not to be asked before"
    if gate == "learning":
        return f"{name} learning{when}: the server of leases lost its memory, nothing new is admitted before"
    return f"{name} {gate} {used} of {limit}"


def occupied(capacity: CapacityView, tokens: int = 0) -> CapacityView:
    """The view with one more Attempt begun there, for which so many tokens are set aside."""
    return capacity._replace(
        in_use=capacity.in_use + 1,
        in_use_current_epoch=capacity.in_use_current_epoch + 1,
        rpm_used=capacity.rpm_used + 1,
        tpm_used=capacity.tpm_used + tokens,
    )


def unseen_capacity(limits: Limits) -> CapacityView:
    """The view of an object that capacity does not know yet: declared gates, nothing in use. Reserving decides."""
    return CapacityView(configured=limits.concurrency, rpm=limits.rpm, tpm=limits.tpm)


def clock_time(moment: datetime) -> str:
    """A moment as operators read it, whole seconds, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

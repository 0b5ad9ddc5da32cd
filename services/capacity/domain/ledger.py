"""The ledger: admit or refuse, all gates of all levels in one decision. Every backend decides by these functions.

Laws of this file:
- all or nothing; a refusal consumes nothing (CAP-1);
- a level's limit by concurrency counts every live lease, its limit by health only those of the present epoch (CAP-4a);
- a view of health older than the one known is refused, so that nobody reserves by a state that is gone (HLT-6);
- a wait hint is sound: before it, and without a release, no retry can be admitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from libs.faults.fault import Fault
from services.capacity.domain.leases import Lease, Request
from services.capacity.domain.levels import Admission, Level, Subject, Usage, newer

WINDOW = timedelta(seconds=60)


class Gate(StrEnum):
    """The gates of a level, in the order in which they are named when several refuse."""

    STALE_HEALTH = "stale_health"
    HEALTH = "health"
    CONCURRENCY = "concurrency"
    ADAPTIVE = "adaptive"
    FROZEN = "frozen"
    LEARNING = "learning"
    REQUESTS = "requests"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not. `retry_at` is None when only a release, or another state of health, can open the gate.

    For STALE_HEALTH, `limit` is the revision known and `used` the one that was shown. FROZEN and LEARNING have no
    figures; only a store that lost its memory names the latter (CAP-9).
    """

    subject: Subject
    gate: Gate
    limit: int
    used: int
    retry_at: datetime | None = None


def heard(level: Level, request: Request) -> Level:
    """The level after it has heard the asker's view of its health: the newer one is kept."""
    return replace(level, health=newer(level.health, request.health_of(level.subject)))


def checked(levels: Sequence[Level], request: Request) -> None:
    """Fault where a request can never be admitted, whatever is released.

    `levels` are the declared ones among the request's subjects. `source_not_configured` for an undeclared Channel or
    Supply, `validation_failed` for a Supply of another Channel or more tokens than a whole window holds.
    """
    declared = {level.subject: level for level in levels}
    for subject in request.subjects[1:]:
        if subject not in declared:
            raise undeclared(subject)
    if declared[request.subjects[2]].channel_id != request.channel_id:
        raise misplaced(request)
    for level in levels:
        if 0 < level.tokens_per_minute < request.tokens:
            raise too_large(level.subject, level.tokens_per_minute)


def undeclared(subject: Subject) -> Fault:
    """A Channel or Supply that the catalogue never told of: an assembly fault."""
    return Fault.of("source_not_configured", f"{subject} was never declared to capacity")


def misplaced(request: Request) -> Fault:
    """A Supply under a Channel that is not its own."""
    return Fault.invalid(("/channel_id", f"is not the channel of supply '{request.supply_id}'"))


def too_large(subject: Subject, tokens_per_minute: int) -> Fault:
    """More tokens than a whole window holds."""
    return Fault.invalid(("/tokens", f"{subject} admits {tokens_per_minute} tokens a minute"))


def closed_gates(level: Level, usage: Usage, request: Request, now: datetime) -> list[Refusal]:
    """The gates of one level that do not admit the request now, rates without their hints.

    `level` has heard the request.
    """
    refusals = []
    shown, known = request.health_of(level.subject), level.health
    if shown is not None and known is not None and shown.revision < known.revision:
        refusals.append(Refusal(level.subject, Gate.STALE_HEALTH, known.revision, shown.revision))
    if known is not None and known.limit is not None and usage.in_use_current_epoch >= known.limit:
        refusals.append(Refusal(level.subject, Gate.HEALTH, known.limit, usage.in_use_current_epoch))
    if level.concurrency and usage.in_use >= level.concurrency:
        refusals.append(Refusal(level.subject, Gate.CONCURRENCY, level.concurrency, usage.in_use))
    if level.pace.slots is not None and usage.in_use >= level.pace.slots:
        refusals.append(Refusal(level.subject, Gate.ADAPTIVE, level.pace.slots, usage.in_use))
    if level.pace.frozen(now):
        refusals.append(Refusal(level.subject, Gate.FROZEN, 0, 0, level.pace.frozen_until))
    if level.requests_per_minute and usage.requests >= level.requests_per_minute:
        refusals.append(Refusal(level.subject, Gate.REQUESTS, level.requests_per_minute, usage.requests))
    if level.tokens_per_minute and usage.tokens + request.tokens > level.tokens_per_minute:
        refusals.append(Refusal(level.subject, Gate.TOKENS, level.tokens_per_minute, usage.tokens))
    return refusals


def retry_at(refusal: Refusal, tokens: int, window: Sequence[Admission]) -> datetime | None:
    """When a gate opens by time alone: a freeze is over, or enough of the window has passed out of it.

    `window` are the level's admissions of the last minute, oldest first. None for a gate that no passing of time opens.
    """
    if refusal.gate is Gate.FROZEN:
        return refusal.retry_at
    if refusal.gate is Gate.REQUESTS:
        requests = [admission for admission in window if admission.requests]
        leaving = refusal.used - refusal.limit  # so many, and one more, must leave
        return requests[leaving].at + WINDOW if leaving < len(requests) else None
    if refusal.gate is Gate.TOKENS:
        left = refusal.used
        for admission in window:
            left -= admission.tokens
            if left + tokens <= refusal.limit:
                return admission.at + WINDOW
    return None


def binding(refusals: Sequence[Refusal]) -> Refusal:
    """The one refusal to tell: of a gate that time does not open, else the one that opens last.

    It carries the latest time that any of them names: nothing can be admitted before that either.
    """
    times = [refusal.retry_at for refusal in refusals if refusal.retry_at is not None]
    latest = max(times, default=None)
    for refusal in refusals:
        if refusal.retry_at is None:
            return replace(refusal, retry_at=latest)
    return next(refusal for refusal in refusals if refusal.retry_at == latest)


def usage_of(level: Level, leases: Sequence[Lease], now: datetime) -> Usage:
    """What these leases use of a level."""
    mine = [lease for lease in leases if lease.on(level)]
    live = [lease for lease in mine if lease.live(now)]
    recent = window_of(level, mine, now)
    return Usage(
        in_use=len(live),
        in_use_current_epoch=sum(lease.epoch_on(level) == level.epoch for lease in live),
        requests=sum(admission.requests for admission in recent),
        tokens=sum(admission.tokens for admission in recent),
        oldest_request=next((admission.at for admission in recent if admission.requests), None),
        oldest_overuse=next((admission.at for admission in recent if not admission.requests), None),
    )


def room_at(level: Level, usage: Usage) -> datetime | None:
    """When the first of what weighs in a level's rate windows leaves them, so that a full one has room by time alone.

    None without a rate, or while nothing weighs. Tokens beyond those reserved weigh in the window of tokens alone.
    """
    if not level.requests_per_minute and not level.tokens_per_minute:
        return None
    full_of_requests = usage.requests >= level.requests_per_minute > 0
    of_tokens = level.tokens_per_minute and not full_of_requests
    moments = (usage.oldest_request, usage.oldest_overuse if of_tokens else None)
    return min((moment + WINDOW for moment in moments if moment is not None), default=None)


def window_of(level: Level, leases: Sequence[Lease], now: datetime) -> list[Admission]:
    """The admissions of the last minute on a level, oldest first; released and lapsed leases count as well."""
    weights = [weight for lease in leases if lease.on(level) for weight in lease.admissions()]
    return sorted((weight for weight in weights if weight.at > now - WINDOW), key=lambda weight: weight.at)


def decide(levels: Sequence[Level], leases: Sequence[Lease], request: Request, now: datetime) -> Refusal | None:
    """None = admitted. `levels` are the declared ones among the request's subjects, having heard the request.

    This is the executable model; a backend that counts elsewhere uses the same pieces.
    """
    checked(levels, request)
    refusals: list[Refusal] = []
    for level in levels:
        for refusal in closed_gates(level, usage_of(level, leases, now), request, now):
            hint = retry_at(refusal, request.tokens, window_of(level, leases, now))
            refusals.append(replace(refusal, retry_at=hint))
    return binding(refusals) if refusals else None

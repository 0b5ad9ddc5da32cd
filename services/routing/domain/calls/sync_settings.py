"""The settings of synchronous calls: `sync` of a policy, read once and checked where they are put together (SYN-12).

| field | default | |
|---|---|---|
| `total_timeout_s` | 60 | the whole of a call, every provider call included (SYN-1) |
| `max_attempts` | 3 | tries that may fail; a 429 is none (SYN-3, SYN-4) |
| `stall_window_s` | 300 | see `stall_clock` (SYN-5) |
| `quota_full` | `fail_fast` | or `wait`: a bounded wait for room (SYN-2) |
| `retry_unknown` | false | also image and speech may be tried again after an unknown outcome (ERR-1a) |
| `selector` | `health_aware` | or `round_robin`, `least_inflight` (SYN-9) |
| `backoff_base_s`, `backoff_max_s` | 2, 30 | between tries, doubled each time, within half of it by chance |
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any

from services.routing.domain.catalog import Policy, Timeouts

LEASE_MARGIN_S = 5.0
"""A lease, and with it a probe's slot, outlives the longest call by this much at least."""


class QuotaFull(StrEnum):
    """What a call does while nobody has room."""

    FAIL_FAST = "fail_fast"
    WAIT = "wait"


class Selector(StrEnum):
    """Who of the surviving candidates comes first (SYN-9)."""

    HEALTH_AWARE = "health_aware"
    ROUND_ROBIN = "round_robin"
    LEAST_INFLIGHT = "least_inflight"


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """See the table of this file."""

    total_timeout_s: float = 60.0
    max_attempts: int = 3
    stall_window_s: float = 300.0
    quota_full: QuotaFull = QuotaFull.FAIL_FAST
    retry_unknown: bool = False
    selector: Selector = Selector.HEALTH_AWARE
    backoff_base_s: float = 2.0
    backoff_max_s: float = 30.0

    def backoff_s(self, turn: int, chance: float) -> float:
        """The pause before try `turn` + 1 of the same kind; `chance` in [0, 1) spreads callers over half of it."""
        longest = min(self.backoff_max_s, self.backoff_base_s * 2.0 ** min(max(turn, 1) - 1, 16))
        return longest * (0.5 + 0.5 * chance)


DEFAULTS = SyncSettings()


def sync_of(policy: Policy) -> SyncSettings:
    """What a policy says, and the defaults where it says nothing."""
    return _read(tuple(sorted(policy.sync.items())))


@lru_cache(maxsize=256)
def _read(said: tuple[tuple[str, Any], ...]) -> SyncSettings:
    values: dict[str, Any] = {}
    for name, value in said:
        kind = _READERS.get(name)
        if kind is not None and value is not None:
            values[name] = kind(value)
    return SyncSettings(**values)


_READERS: dict[str, Any] = {
    "total_timeout_s": float,
    "max_attempts": int,
    "stall_window_s": float,
    "quota_full": QuotaFull,
    "retry_unknown": bool,
    "selector": Selector,
    "backoff_base_s": float,
    "backoff_max_s": float,
}
assert set(_READERS) == {item.name for item in fields(SyncSettings)}


def incoherences(sync: SyncSettings, lease_s: float) -> Iterator[tuple[str, str]]:
    """(field, reason) for what cannot be meant; `lease_s` is the longest time to live of a lease (SYN-12)."""
    if sync.total_timeout_s + LEASE_MARGIN_S > lease_s:
        yield (
            "total_timeout_s",
            f"{sync.total_timeout_s:g} s and {LEASE_MARGIN_S:g} s are more than a lease lives ({lease_s:g} s): a call, "
            "or a probe, would outlive its slot (CAP-3); raise POINTSMAN_CAPACITY_TTL_MAX_S or lower the timeout",
        )
    if sync.stall_window_s <= 0:
        yield "stall_window_s", "must be above 0, or a call would stall before it has waited"
    if sync.backoff_max_s < sync.backoff_base_s:
        yield "backoff_max_s", f"must not be below backoff_base_s ({sync.backoff_base_s:g})"


def watchdog_incoherence(limits: Timeouts) -> str:
    """Why the watchdogs of a Channel's streams cannot be meant; empty if they can (SYN-12). 0 = not watched."""
    if (limits.ttft_s > 0) != (limits.inter_token_s > 0):
        return "ttft_s and inter_token_s go in pairs: a stream is watched from its first moment to its last, or never"
    return ""

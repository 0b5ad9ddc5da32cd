"""Whom a call leaves alone for a while, and how long it waits (SYN-2, SYN-4). Pure: now and chance are arguments.

Laws of this file:
- who has no room is not asked again before it says so; under `fail_fast` not again in this call;
- who has failed is left alone for its Retry-After, or for a backoff that doubles with each of its failures;
- a call waits for a backoff of its own under either policy, for room or for a breaker only under `wait`;
- a failure that lasts (`LASTING`) is waited for under neither, unless its provider said until when.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from libs.faults.fault import Fault
from services.routing.domain.calls.ends import Hold, curable
from services.routing.domain.calls.sync_settings import QuotaFull, SyncSettings
from services.routing.domain.decision import Fate

SHORTEST_S = 0.001
LASTING = frozenset({"key_invalid", "account_forbidden", "balance_exhausted", "model_unavailable"})
"""What an operator has to mend, or the provider: the failures that open a circuit at once (HLT-8)."""


class Patience:
    """Of one call. `holds` are by Supply."""

    __slots__ = ("_failures", "_sync", "_waits", "holds")

    def __init__(self, sync: SyncSettings) -> None:
        self._sync = sync
        self._waits = 0
        self._failures: dict[tuple[str, bool], int] = {}
        self.holds: dict[str, Hold] = {}

    @property
    def _waits_for_room(self) -> bool:
        return self._sync.quota_full is QuotaFull.WAIT

    def failed(
        self, supply: str, alike: Iterable[str], fault: Fault, now: datetime, left_s: float, chance: float
    ) -> None:
        """A real try failed at a Supply; `alike` are those whom the same failure befalls."""
        pause_s, told_ms = self._backoff(supply, True, chance), fault.retry_after_ms
        lasting = fault.code in LASTING and told_ms is None
        if lasting:
            pause_s = max(pause_s, left_s)
        elif told_ms is not None:
            pause_s = max(pause_s, told_ms / 1000)
        until = now + timedelta(seconds=pause_s)
        self._hold((supply, *alike), Hold(until, fault.message, told_ms, failed=True, lasting=lasting))

    def congested(
        self, supply: str, reason: str, retry_after_ms: int | None, now: datetime, left_s: float, chance: float
    ) -> None:
        """A provider had no room."""
        backoff_s = self._backoff(supply, False, chance)
        pause_s = backoff_s if retry_after_ms is None else max(SHORTEST_S, retry_after_ms / 1000)
        self._no_room((supply,), reason, retry_after_ms, pause_s, now, left_s)

    def refused(
        self, supplies: Iterable[str], reason: str, later: datetime | None, now: datetime, left_s: float, chance: float
    ) -> None:
        """Our own capacity has no room for these; `later` is when it may have."""
        if later is None:
            self._no_room(supplies, reason, None, self._sync.backoff_s(self._waits + 1, chance), now, left_s)
            return
        pause_s = max(SHORTEST_S, (later - now).total_seconds())
        self._no_room(supplies, reason, round(pause_s * 1000), pause_s, now, left_s)

    def next_look(
        self, fates: Sequence[Fate], retry_at: datetime | None, now: datetime, chance: float
    ) -> datetime | None:
        """When another look may help; None where none would, or the policy forbids to wait for what would. `fates` and
        `retry_at` are those of the look that found nobody."""
        if not curable(fates, self.holds):
            return None
        if not self._waits_for_room:
            failed = (hold.until for hold in self.holds.values() if hold.failed and not hold.lasting)
            return min((until for until in failed if until > now), default=None)
        moments = [hold.until for hold in self.holds.values() if hold.until > now]
        if retry_at is not None and retry_at > now:
            moments.append(retry_at)
        self._waits += 1
        usual = now + timedelta(seconds=self._sync.backoff_s(self._waits, chance))
        return min([*moments, usual])

    def _backoff(self, supply: str, failed: bool, chance: float) -> float:
        turn = self._failures[supply, failed] = self._failures.get((supply, failed), 0) + 1
        return self._sync.backoff_s(turn, chance)

    def _no_room(
        self,
        supplies: Iterable[str],
        reason: str,
        told_ms: int | None,
        pause_s: float,
        now: datetime,
        left_s: float,
    ) -> None:
        if not self._waits_for_room:
            pause_s = max(pause_s, left_s)
        self._hold(supplies, Hold(now + timedelta(seconds=pause_s), reason, told_ms))

    def _hold(self, supplies: Iterable[str], hold: Hold) -> None:
        for supply in supplies:
            self.holds[supply] = hold

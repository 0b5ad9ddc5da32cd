"""How often a call may be tried, and what follows from a try that failed (SYN-2, SYN-3, SYN-4, ERR-1a). Pure.

| what failed | consumes an attempt | what follows |
|---|---|---|
| content, request, an assembly fault, whatever cannot be retried | yes | the call ends with that fault |
| capacity (429, out of stock) | no | another Supply, or the wait that the policy permits |
| supply, retryable | yes | another try while attempts are left, else the call is exhausted |
| unknown; chat, embedding, OCR, or `sync.retry_unknown` | yes | the same, with a possible charge on record |
| unknown; image, speech | yes | the call ends with that fault: a second one might be paid twice |
| anything after the first token of a stream | yes | the call ends with that fault |
"""

from dataclasses import dataclass
from enum import StrEnum

from services.routing.domain.calls.sync_settings import SyncSettings
from services.routing.domain.catalog import Kind
from services.routing.domain.task import Failure

REPEATABLE = frozenset({Kind.CHAT, Kind.EMBEDDING, Kind.OCR})
"""Kinds of which a second answer costs little and doubles nothing (ERR-1a)."""


class Next(StrEnum):
    """What follows from a failed try."""

    FINAL = "final"
    """The call ends with the try's own fault."""
    AGAIN = "again"
    EXHAUSTED = "exhausted"


def consumes(failure: Failure) -> bool:
    """Whether it was a real try. A refusal for want of room never is."""
    return failure.category != "capacity"


@dataclass(slots=True)
class RetryBudget:
    """The attempts of one call. Waiting never touches it."""

    most: int
    used: int = 0

    @property
    def left(self) -> int:
        """How many more tries may fail, the present one included."""
        return self.most - self.used

    def after(self, failure: Failure, kind: Kind, sync: SyncSettings, begun: bool = False) -> Next:
        """Book a failed try and say what follows. `begun`: its first token has reached the caller."""
        if not consumes(failure):
            return Next.FINAL if begun or not failure.retryable else Next.AGAIN
        self.used += 1
        if begun or not _repeatable(failure, kind, sync):
            return Next.FINAL
        return Next.AGAIN if self.used < self.most else Next.EXHAUSTED


def _repeatable(failure: Failure, kind: Kind, sync: SyncSettings) -> bool:
    if failure.category == "unknown":
        return kind in REPEATABLE or sync.retry_unknown
    return failure.category == "supply" and failure.retryable

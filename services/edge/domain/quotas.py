"""What a tenant may do in a minute (AUTH-2).

Laws of this file:
- a minute is one of the wall clock, in UTC, so that replicas need not agree on when it began;
- a request counts when it is let in; one that is refused costs nothing;
- the headers are those of draft-ietf-httpapi-ratelimit-headers-10: `RateLimit-Policy` names the quota (`q`) and its
  window in seconds (`w`), `RateLimit` what is left of it (`r`) and in how many seconds it is whole again (`t`).

Spending per period is a budget, and is kept where money is: nothing of it is decided here.
"""

import math
from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct

from libs.faults.fault import Fault

WINDOW_S = 60
POLICY = "requests"


@dataclass(frozen=True, slots=True)
class Quotas:
    """Of one tenant, as the catalogue names them; 0 = no quota."""

    rpm: int = 0


class Standing(Struct, frozen=True):
    """How a tenant stands behind a request: `left` of `limit` until the minute ends, in `reset_s` seconds."""

    limit: int
    left: int
    reset_s: int

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """As they are sent."""
        return (
            (b"ratelimit-policy", b'"%s";q=%d;w=%d' % (POLICY.encode(), self.limit, WINDOW_S)),
            (b"ratelimit", b'"%s";r=%d;t=%d' % (POLICY.encode(), self.left, self.reset_s)),
        )


def minute_of(now: datetime) -> int:
    """The number of the minute, since the beginning of Unix time."""
    return int(now.timestamp()) // WINDOW_S


def standing(limit: int, used: int, now: datetime) -> Standing:
    """After `used` requests of this minute."""
    return Standing(limit, max(0, limit - used), max(1, math.ceil(WINDOW_S - now.timestamp() % WINDOW_S)))


def used_up(stands: Standing) -> Fault:
    """The refusal of one request too many."""
    told = f"{stands.limit} of {stands.limit} requests this minute"
    return Fault.of("quota_exceeded", told, retry_after_ms=stands.reset_s * 1000)

"""What a tenant may hold open at one process of the edge at a time, so that no tenant takes all of it (AUTH-2).

Laws of this file:
- a limit is one tenant's at one process: what is held open costs memory and sockets there, and nowhere else;
- a request holds one place at most, from before any work until its answer has ended, in whatever way;
- 0 is no limit, as with the quotas of the catalogue;
- a refusal names the limit, what the caller can do now, and the setting that an operator may raise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from libs.faults.fault import Fault

MIB = 1024 * 1024
RETRY_AFTER_MS = 2000
"""Nobody knows when the tenant's own clients make room."""


class Hold(StrEnum):
    """What a request holds while it is open, in the words of a refusal."""

    STREAM = "event streams"
    JOIN = "joins"
    CALL = "synchronous calls"
    BODY = "requests with a body"


VARIABLES: Mapping[Hold, str] = {
    Hold.STREAM: "POINTSMAN_TENANT_STREAMS",
    Hold.JOIN: "POINTSMAN_TENANT_JOINS",
    Hold.CALL: "POINTSMAN_TENANT_CALLS",
    Hold.BODY: "POINTSMAN_TENANT_BODIES",
}
BODY_MIB = "POINTSMAN_TENANT_BODY_MIB"
_REMEDIES: Mapping[Hold, str] = {
    Hold.STREAM: "close those that nobody reads",
    Hold.JOIN: "wait for fewer Runs at once, or name a callback_url",
    Hold.CALL: "send more once some have ended",
    Hold.BODY: "send more once some are answered",
}


@dataclass(frozen=True, slots=True)
class OpenLimits:
    """Of every tenant alike; 0 = no limit. `body_bytes`: of all its bodies that are in memory together."""

    streams: int = 2000
    joins: int = 2000
    calls: int = 1000
    bodies: int = 1000
    body_bytes: int = 512 * MIB

    def of(self, hold: Hold) -> int:
        """How many of these a tenant may hold."""
        match hold:
            case Hold.STREAM:
                return self.streams
            case Hold.JOIN:
                return self.joins
            case Hold.CALL:
                return self.calls
            case Hold.BODY:
                return self.bodies


def one_too_many(tenant: str, hold: Hold, limit: int) -> Fault:
    """The refusal of a request for which there is no place."""
    told = f"tenant {tenant!r} has {limit} of {limit} {hold} open at this server; {_REMEDIES[hold]}"
    return _refusal(told, VARIABLES[hold])


def too_heavy(tenant: str, held: int, limit: int) -> Fault:
    """The refusal of a body for which there is no room beside the tenant's others, which have `held` bytes."""
    told = f"open requests of tenant {tenant!r} hold {held} of {limit} bytes of bodies at this server"
    remedy = "send more once some are answered, and large files to POST /v1/artifacts"
    return _refusal(f"{told}; {remedy}", BODY_MIB)


def _refusal(told: str, variable: str) -> Fault:
    raised = f"{told}, or ask the operator to raise {variable}"
    return Fault.of("quota_exceeded", raised, retry_after_ms=RETRY_AFTER_MS)

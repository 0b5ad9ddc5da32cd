"""A synchronous call and its tries as values. They are structs: a call is stepped through half a dozen of each, which
frozen dataclasses make field by field."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from libs.kernel.money import Money
from services.routing.domain.calls.stall_clock import NO_TIMES, Times
from services.routing.domain.task import Artifact, Failure
from services.routing.domain.usage import Usage


class CallState(StrEnum):
    """Where a call stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"
    """Its caller left before it ended."""


class TryState(StrEnum):
    """Where one try stands."""

    SENT = "sent"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CONGESTED = "congested"
    """Refused for want of room (429): it consumes no attempt (SYN-4)."""
    UNKNOWN = "unknown"
    """Nothing was proved: it may have been charged (ERR-1a)."""
    ABANDONED = "abandoned"


class Try(Struct, frozen=True):
    """One try of a call on one Supply. Times are nanoseconds of a monotonic clock; None = not yet, or never."""

    id: str
    number: int
    supply: str
    channel: str
    state: TryState
    quote: Money
    round: int
    sent_at: datetime
    channel_epoch: int = 0
    supply_epoch: int = 0
    price_rule: str = ""
    """The price rule that quoted it, and its version: what was used is priced by that one for ever."""
    price_version: int = 0
    reserved_tokens: int = 0
    failure: Failure | None = None
    cost: Money | None = None
    possible_charge: bool = False
    latency_ns: int | None = None
    first_token_ns: int | None = None
    usage: Usage | None = None
    provider_request_id: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """What degradation changed of a request (TIER-6)."""

    rule: str
    requested_profile: str
    actual_profile: str
    dropped_inputs: tuple[str, ...] = ()


class Call(Struct, frozen=True):
    """One synchronous call on record."""

    id: str
    tenant: str
    model: str
    kind: str
    created_at: datetime
    currency: str
    catalog_revision: int
    session_id: str = ""
    parent_call_id: str = ""
    state: CallState = CallState.RUNNING
    tries: tuple[Try, ...] = ()
    failure: Failure | None = None
    supply: str = ""
    """Who served it; empty = nobody, or the response cache."""
    cached: bool = False
    changed: Changed | None = None
    times: Times = NO_TIMES
    finished_at: datetime | None = None
    artifacts: tuple[Artifact, ...] = ()
    usage: Usage | None = None
    hold: str = ""
    """The Hold that pays for it, its own or one that it shares; empty = it came to nothing that costs."""

    @property
    def cost(self) -> Money:
        """What all its tries have cost, as far as that is known."""
        total = Money.zero(self.currency)
        for item in self.tries:
            if item.cost is not None and item.cost.currency == self.currency:
                total += item.cost
        return total


def spent_in(tries: Iterable[Try], currency: str) -> Money:
    """What tries have cost; one that may have been charged counts with its quote (COST-6, COST-12)."""
    total = Money.zero(currency)
    for item in tries:
        amount = item.quote if item.cost is None and item.possible_charge else item.cost
        if amount is not None and amount.currency == currency:
            total += amount
    return total


def orphaned(call: Call, failure: Failure, now: datetime) -> Call:
    """A call whose process died: of its last try nobody knows what became."""
    last = replace(call.tries[-1], state=TryState.UNKNOWN, failure=failure, possible_charge=True)
    return replace(call, state=CallState.FAILED, failure=failure, tries=(*call.tries[:-1], last), finished_at=now)


def with_costs(call: Call, costs: Mapping[str, Money]) -> Call:
    """The call with what its tries have cost, by their ids."""
    if not costs:
        return call
    tries = tuple(replace(item, cost=costs[item.id]) if item.id in costs else item for item in call.tries)
    return replace(call, tries=tries)

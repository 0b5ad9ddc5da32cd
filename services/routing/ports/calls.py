"""What synchronous calls need of others (SYN). Every call may raise `Fault`; none raises anything else.

One contract suite proves every implementation of the store.
"""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from libs.kernel.money import Money
from services.routing.domain.calls.call import Call, CallState, Try
from services.routing.domain.calls.token_rates import TokenRates
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.decision import HealthView, QuoteView
from services.routing.domain.feedback import SILENT, Feedback
from services.routing.domain.rounds import SelectionRound
from services.routing.domain.task import Artifact, Failure
from services.routing.domain.usage import Usage
from services.routing.ports import CapacityViews, HealthViews, Priced, Refused, Reserved
from services.routing.ports.prices import UsagePrices


class Intent(Struct, frozen=True):
    """A try that is about to be sent, with its call as it stands then and the round that chose it.

    The call's tries end with this one, in `sent`. `overdue_at`: whoever finds it unended then finds it alone.
    """

    call: Call
    round: SelectionRound
    overdue_at: datetime

    @property
    def tried(self) -> Try:
        """The try itself."""
        return self.call.tries[-1]


class CallQuery(Struct, frozen=True):
    """Which calls that have ended; empty fields ask for nothing."""

    tenant: str = ""
    model: str = ""
    states: tuple[CallState, ...] = ()
    session_id: str = ""
    since: datetime | None = None
    """Those that ended then or later."""
    until: datetime | None = None
    """Those that ended before then."""


class CallStore(Protocol):
    """Calls and their tries, appended and never changed; both are forgotten after their time.

    Laws: the intent of a try is durable before `intend` returns, and a (call, number) is intended once for ever; a call
    ends once; a call that has not ended stands as its last intent says.
    """

    async def intend(self, intent: Intent) -> None:
        """Keep it. Fault `already_exists` for a call that has had a try of this number, or has ended."""
        ...

    def end(self, call: Call, rounds: Sequence[SelectionRound]) -> Awaitable[bool]:
        """Keep the end of a call, with the rounds that no try came of. False, and nothing is kept, if it has ended."""
        ...

    async def get(self, call_id: str) -> tuple[Call, tuple[SelectionRound, ...]] | None:
        """The call as it stands, and its rounds, oldest first."""
        ...

    async def ended(self, call_ids: Sequence[str]) -> tuple[Call, ...]:
        """Those of them that have ended, by id."""
        ...

    async def paid_by(self, hold: str, since: datetime) -> tuple[Call, ...] | None:
        """All calls that drew on a Hold which was taken at `since`; None where one of them has not ended."""
        ...

    async def find(self, query: CallQuery, token: str, size: int) -> tuple[tuple[Call, ...], str]:
        """Calls that have ended, the newest end first: at most `size` of those after the token, and the token of what
        follows or "". Fault `malformed_request` for a token that no page gave."""
        ...

    async def overdue(self, since: datetime, until: datetime, count: int) -> tuple[Call, ...]:
        """Calls that have not ended although their last try was overdue at `since` or later, by `until`; at most
        `count`, as they stood when it was sent."""
        ...

    async def last_success(self, model: str, since: datetime) -> datetime | None:
        """When a call of that model last succeeded, whoever served it; None where none has since then."""
        ...

    async def forget(self, before: datetime, now: datetime, count: int) -> int:
        """Remove calls that ended before that, with their tries, and answers whose time is over `now`; of each sort
        `count` at most. How many were removed."""
        ...


class AnswerStore(Protocol):
    """The response cache (SYN-10): complete successes by tenant and canonical request."""

    async def answer(self, tenant: str, key: str, now: datetime) -> bytes | None:
        """What was kept, unless its time is over."""
        ...

    async def keep_answer(self, tenant: str, key: str, answer: bytes, until: datetime) -> None:
        """Keep it until then, in the place of an older one."""
        ...


class CallQuotes(UsagePrices, Protocol):
    """Prices, many questions at once."""

    async def quote_each(
        self, kind: str, billing_mode: str, asks: Sequence[Sequence[Priced]], revision: int
    ) -> tuple[Sequence[Mapping[str, QuoteView]], Mapping[tuple[str, int], TokenRates]]:
        """As `Quotes.quote`, for several requests of one kind and mode; and the rates of the rules that quoted, by (id,
        version), of those that charge for nothing but tokens."""
        ...


class CallCapacity(Protocol):
    """Slots and windows of tokens. The leases of calls are never renewed: they live as long as their call may."""

    async def snapshot(self) -> CapacityViews:
        """As `Capacity.snapshot`."""
        ...

    def reserve(
        self,
        lease_id: str,
        supply: Supply,
        channel_health: HealthView,
        supply_health: HealthView,
        *,
        tokens: int = 0,
        ttl_s: float | None = None,
    ) -> Awaitable[Reserved | Refused]:
        """As `Capacity.reserve`, with the tokens that the try may take."""
        ...

    def release(self, lease_id: str, feedback: Feedback = SILENT) -> Awaitable[None]:
        """As `Capacity.release`."""
        ...


class CallHealth(Protocol):
    """The breaker's view and its ear."""

    async def snapshot(self) -> HealthViews:
        """As `Health.snapshot`."""
        ...

    def report(
        self, attempt: Try, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
    ) -> Awaitable[None]:
        """Tell the end of a try; telling it twice is harmless."""
        ...


class Outgoing(Struct, frozen=True):
    """One provider call. `input` is a JSON object; 0 s = that phase is not watched."""

    attempt_id: str
    kind: str
    input: bytes
    first_token_s: float
    inter_token_s: float
    longest_s: float
    """The whole of it, media fetched and stored included."""


class Report(Struct, frozen=True):
    """What a provider call gave beside its output. `first_token_s` is None where it was not measured."""

    usage: Usage | None = None
    finish_reason: str = ""
    provider_request_id: str = ""
    reported_cost: Money | None = None
    first_token_s: float | None = None
    ignored_fields: tuple[str, ...] = ()


class Answered(Struct, frozen=True):
    """The answer to a provider call."""

    output: bytes
    report: Report
    artifacts: tuple[Artifact, ...] = ()


class CallProvider(Protocol):
    """The dialects. A raised Fault says what happened; category `unknown` means that nothing was proved (ERR-1a).
    Nothing is ever sent twice."""

    async def invoke(self, channel: Channel, supply: Supply, outgoing: Outgoing) -> Answered:
        """One call."""
        ...

    def stream(
        self, channel: Channel, supply: Supply, outgoing: Outgoing
    ) -> AsyncGenerator[list[bytes] | Report, None]:
        """The same piece by piece, those together that came together, the report last. A stream that is closed before
        its end is ended upstream."""
        ...

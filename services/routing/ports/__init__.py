"""What routing needs of others, in its own words. Every call may raise `Fault`; none raises anything else.

First the peers, then the store of Tasks; one contract suite each proves every implementation.
"""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from libs.kernel.money import Money
from services.routing.domain.alternative import PriceList
from services.routing.domain.catalog import Catalog, Channel, Supply
from services.routing.domain.catalog_file import ObjectKind
from services.routing.domain.catalog_history import Holdings, ObjectRevision
from services.routing.domain.decision import CapacityView, HealthView, QuoteView
from services.routing.domain.feedback import SILENT, Feedback
from services.routing.domain.refusals import HealthCause
from services.routing.domain.rounds import RoundQuery, SelectionRound
from services.routing.domain.task import Artifact, Attempt, Failure, Task
from services.routing.ports.alerts import Alert

HealthViews = tuple[Mapping[str, HealthView], Mapping[str, HealthView]]
"""(by Channel id, by Supply id) at one moment."""
CapacityViews = tuple[Mapping[str, CapacityView], Mapping[str, CapacityView], Mapping[str, CapacityView]]
"""(by kind, by Channel id, by Supply id) at one moment."""


class CatalogReader(Protocol):
    """The catalogue in force. `current` may be at most one second old; `at` reads an older revision for ever."""

    async def current(self) -> Catalog:
        """The newest revision, as far as this process has looked."""
        ...

    async def newest(self) -> Catalog:
        """The newest revision now: for a refusal, which a change that another process just answered may undo."""
        ...

    async def at(self, revision: int) -> Catalog:
        """That revision, as it was."""
        ...


class CatalogStore(Protocol):
    """The catalogue's history. Laws: a revision, once committed, never changes and is never removed (CAT-2); catalogue
    revisions rise by one; of two commits on the same base one wins and the other raises Fault `revision_conflict`.
    """

    async def revision(self) -> int:
        """The newest catalogue revision; 0 before the first."""
        ...

    async def holdings(self) -> Holdings:
        """The newest revision of every object, retired ones too, and the settings in force."""
        ...

    async def snapshot(self, revision: int) -> Catalog | None:
        """The catalogue as it was at that revision, whole; None if there is none."""
        ...

    async def commit(self, base: int, holdings: Holdings, catalog: Catalog, news: Sequence[ObjectRevision]) -> None:
        """Add revision `base + 1` with these new object revisions, all or nothing."""
        ...

    async def object(self, kind: ObjectKind, object_id: str, revision: int = 0) -> ObjectRevision | None:
        """One object at that revision; 0 = the newest."""
        ...

    async def objects(
        self, kind: ObjectKind | None, include_retired: bool, after: tuple[str, str] | None, count: int
    ) -> Sequence[ObjectRevision]:
        """Newest revisions in the order of (kind, id), those after the given pair, at most `count`."""
        ...

    async def first_declared(self, kind: ObjectKind) -> Mapping[str, datetime]:
        """When each object of that sort was declared first, by id."""
        ...


class Health(Protocol):
    """The breaker's view and its ear."""

    async def snapshot(self) -> HealthViews:
        """Every Channel and Supply."""
        ...

    def report(
        self, attempt: Attempt, failure: Failure | None, dispatched_at: datetime, observed_at: datetime
    ) -> Awaitable[None]:
        """Tell the end of an Attempt; telling it twice is harmless."""
        ...

    async def apply_targets(self, catalog: Catalog) -> int:
        """Declare every Channel and Supply; answers the catalogue revision in force there."""
        ...

    async def cause_of(self, sort: str, name: str, revision: int) -> HealthCause:
        """The event that brought a `channel` or `supply` into the state of that revision; Fault not_found."""
        ...

    async def breaches(self) -> Mapping[str, str]:
        """Channels and Supplies whose history does not fold to their state, and what does not fit."""
        ...


class Reserved(Struct, frozen=True):
    """A lease was taken."""

    lease_id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Refused:
    """Why not; nothing was consumed."""

    level: str
    """For example `supply ark-main/seedance`."""
    gate: str
    """`concurrency`, `requests`, `tokens`, `health`, `stale_health`, `adaptive`, `frozen`, `learning` or
    `submissions`."""
    limit: int
    used: int
    retry_at: datetime | None = None


class Capacity(Protocol):
    """Slots."""

    async def snapshot(self) -> CapacityViews:
        """Every level."""
        ...

    def reserve(
        self, lease_id: str, supply: Supply, channel_health: HealthView, supply_health: HealthView, *, tokens: int = 0
    ) -> Awaitable[Reserved | Refused]:
        """Both or neither, with the tokens that the Attempt may take; the same lease_id is the same lease."""
        ...

    async def renew(self, lease_ids: Sequence[str]) -> frozenset[str]:
        """Prolong; answers the ids that are lost. What this process knows of them is told along (CAP-9)."""
        ...

    def release(self, lease_id: str, feedback: Feedback = SILENT) -> Awaitable[None]:
        """Give back, and tell how it went; doing it twice is harmless."""
        ...

    async def held(self) -> Sequence[tuple[str, datetime]]:
        """Leases of routing in force: (id, when it was taken)."""
        ...

    async def apply_limits(self, catalog: Catalog) -> int:
        """Declare every level; answers the catalogue revision in force there."""
        ...

    async def apply_health(self, channels: Mapping[str, HealthView], supplies: Mapping[str, HealthView]) -> None:
        """Pass on what health allows."""
        ...


class Priced(Struct, frozen=True):
    """One Supply to be priced: its rules and the input it would be sent."""

    supply: Supply
    input: Mapping[str, Any]


class Quotes(Protocol):
    """Prices."""

    async def quote(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], revision: int
    ) -> Mapping[str, QuoteView]:
        """By Supply id, in the catalogue's currency, under the rules of catalogue `revision`.

        Fault governance_backend_down while only older rules are known (not told yet), revision_conflict for newer ones.
        """
        ...

    async def quote_under(
        self, kind: str, billing_mode: str, candidates: Sequence[Priced], prices: PriceList, at: datetime
    ) -> Mapping[str, QuoteView]:
        """By Supply id, submitted `at`, under these rules and rates instead of those in force; none of them is kept.

        Fault validation_failed for a rule that is none.
        """
        ...

    async def apply_prices(self, catalog: Catalog) -> int:
        """Declare every price rule; answers the catalogue revision in force there."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a finished job gave."""

    artifacts: tuple[Artifact, ...]
    output: Mapping[str, Any]
    usage: Mapping[str, Any]
    reported_cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The provider took it; `delivered` is there when the job finished within the call."""

    provider_task_id: str
    delivered: Delivered | None = None


@dataclass(frozen=True, slots=True)
class Polled:
    """Where a job stands: `queued`, `running`, `succeeded`, `failed` or `cancelled`."""

    state: str
    delivered: Delivered | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What the provider says: `accepted` (with what it gave, if that came along), `not_accepted` or `unknown`."""

    verdict: str
    provider_task_id: str = ""
    evidence: str = ""
    delivered: Delivered | None = None


class Provider(Protocol):
    """The dialects. A raised Fault of `submit` says what happened; category `unknown` means nobody knows."""

    async def submit(self, channel: Channel, supply: Supply, attempt: Attempt) -> Submitted:
        """Send the job, once."""
        ...

    async def poll(self, channel: Channel, supply: Supply, attempt: Attempt) -> Polled:
        """Ask where it stands; a Fault says nothing about the job."""
        ...

    async def cancel(self, channel: Channel, supply: Supply, attempt: Attempt) -> tuple[bool, Money | None]:
        """(whether it will not run to its end, cost reported for it)."""
        ...

    async def reconcile(self, channel: Channel, supply: Supply, attempt: Attempt, silent_s: float) -> Reconciled:
        """Ask the provider's records about an unanswered submission, whose silence has lasted so long at least."""
        ...

    async def look_up(
        self, channel: Channel, supply: Supply, attempt: Attempt, until: datetime, silent_s: float
    ) -> Reconciled:
        """Read its records for what may have been sent between then and `until`; nothing is ever sent."""
        ...

    async def unresolved_secrets(self, refs: Sequence[str]) -> Mapping[str, str]:
        """References that cannot be read, with the reason."""
        ...

    async def adapters(self) -> Mapping[str, frozenset[str]]:
        """The dialects on offer, each with its ways to resolve an unanswered submission."""
        ...


# --- The store of Tasks -----------------------------------------------------------------------------------------------


class Lane(StrEnum):
    """Two queues in one table, so that waiting Tasks never delay the polls of running ones."""

    DISPATCH = "dispatch"
    """Tasks in `queued`."""
    FOLLOW = "follow"
    """Tasks in `dispatching` or `running`."""


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which Tasks; empty fields ask for nothing."""

    task_ids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    uncertain: bool = False
    """Only those with an Attempt that is uncertain, or unresolved and without an operator's word."""
    tenant: str = ""
    page_size: int = 100
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a claimed Task: all of it or nothing.

    `after` replaces `before`; Attempts that differ are written, never removed. `rounds` are appended. The claim goes on
    to `until`, counted from the write and not from when it was taken; without `until` it ends. With `unless_stopped`
    the write is refused once a cancel or a pause was asked for.
    """

    before: Task
    after: Task
    now: datetime
    rounds: tuple[SelectionRound, ...] = ()
    alerts: tuple[Alert, ...] = ()
    until: datetime | None = None
    unless_stopped: bool = False


class TaskStore(Protocol):
    """The durable queue, the Attempts and their rounds.

    Laws: a write by a claim that was taken over changes nothing and raises Fault `fenced` (ATT-7); a terminal Task
    never changes state; rounds and Attempts are never removed; one Task has at most one live Attempt.
    """

    async def add(self, task: Task) -> Task:
        """Keep a new Task, due at once; if its id is known, the Task as it stands there (idempotent)."""
        ...

    async def get(self, task_id: str) -> Task | None:
        """The Task with its Attempts."""
        ...

    async def find(self, query: TaskQuery) -> tuple[tuple[Task, ...], str]:
        """A page, oldest first, and the token of the next one."""
        ...

    async def of_attempt(self, attempt_id: str) -> Task | None:
        """The Task that this Attempt belongs to."""
        ...

    async def of_job(self, channel: str, provider_task_id: str) -> str | None:
        """The Attempt that has that job of the Channel's provider. For an operator's question: all are looked at."""
        ...

    async def claim(self, lane: Lane, worker: str, count: int, now: datetime, until: datetime) -> tuple[Task, ...]:
        """Take up to `count` due Tasks for `worker` until `until`; each claim raises the Task's epoch.

        Due: not terminal, `next_action_at` reached, no claim in force. No Task goes to two claimers. The dispatch lane
        goes by tags (`domain.fairness`), but who is only to be ended goes first; the other by time, polls last.
        """
        ...

    async def claim_one(self, task_id: str, worker: str, now: datetime, until: datetime) -> Task | None:
        """Take that Task, due or not, unless it is terminal or claimed."""
        ...

    async def prolong(self, claims: Sequence[tuple[str, int]], until: datetime) -> frozenset[str]:
        """Prolong claims (task id, epoch) in force; answers the Tasks that somebody else has claimed since."""
        ...

    async def save(self, write: Write) -> Task:
        """Write under the claim that `before` was read with; the Task as stored.

        Faults: `fenced` when the claim was taken over or the Task is terminal; with `unless_stopped` `cancelled`, and
        `conflict` with `pausing.PAUSED` for one that is paused. A cancel that came in between makes the Task due at
        once, whatever `after` says; so does a pause, or the end of one, where `after` is queued.
        """
        ...

    async def ask_cancel(self, task_id: str, reason: str, now: datetime) -> Task | None:
        """Set the durable flag and make the Task due; a terminal Task is answered unchanged, None if unknown."""
        ...

    async def correct(self, attempt: Attempt, spent: Money) -> Task:
        """Book an operator's word on an unresolved Attempt of a Task that has ended; state and fault stay.

        Fault `conflict` when another word was booked first.
        """
        ...

    async def rounds(self, task_id: str) -> tuple[SelectionRound, ...]:
        """Every round, oldest first."""
        ...

    async def decided(self, query: RoundQuery) -> tuple[SelectionRound, ...]:
        """Rounds of all Tasks in the order of (time, Task id, round), at most `count`."""
        ...

    async def count_decided(self, query: RoundQuery) -> int:
        """How many there are, whatever `after` and `count` say."""
        ...

    async def live_leases(self) -> tuple[str, ...]:
        """Capacity leases of every Attempt that has not ended."""
        ...

    async def unreported(self, count: int) -> tuple[Attempt, ...]:
        """Attempts whose outcome is owed to health, oldest end first."""
        ...

    async def reported(self, attempt_ids: Sequence[str]) -> None:
        """Health has acknowledged them."""
        ...

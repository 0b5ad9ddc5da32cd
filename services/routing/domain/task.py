"""Tasks and Attempts as values, and the tables of their states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from libs.kernel.money import Money
from services.routing.domain.request import Request


class TaskState(StrEnum):
    """Where a Task stands."""

    QUEUED = "queued"
    DISPATCHING = "dispatching"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptState(StrEnum):
    """Where an Attempt stands."""

    RESERVED = "reserved"
    SUBMITTING = "submitting"
    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUBMISSION_UNCERTAIN = "submission_uncertain"
    NOT_ACCEPTED = "not_accepted"
    UNRESOLVED = "unresolved"


TASK_MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.DISPATCHING, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.DISPATCHING: frozenset(
        {TaskState.QUEUED, TaskState.RUNNING, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}
    ),
    TaskState.RUNNING: frozenset({TaskState.QUEUED, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.SUCCEEDED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELLED: frozenset(),
}

ATTEMPT_MOVES: Mapping[AttemptState, frozenset[AttemptState]] = {
    AttemptState.RESERVED: frozenset({AttemptState.SUBMITTING, AttemptState.FAILED, AttemptState.CANCELLED}),
    AttemptState.SUBMITTING: frozenset(
        {
            AttemptState.ACCEPTED,
            AttemptState.RUNNING,
            AttemptState.SUCCEEDED,
            AttemptState.FAILED,
            AttemptState.SUBMISSION_UNCERTAIN,
        }
    ),
    AttemptState.SUBMISSION_UNCERTAIN: frozenset(
        {AttemptState.ACCEPTED, AttemptState.NOT_ACCEPTED, AttemptState.UNRESOLVED}
    ),
    AttemptState.ACCEPTED: frozenset(
        {
            AttemptState.RUNNING,
            AttemptState.SUCCEEDED,
            AttemptState.FAILED,
            AttemptState.CANCELLED,
            AttemptState.NOT_ACCEPTED,  # an operator takes his word back, under which nothing was ever heard
        }
    ),
    AttemptState.RUNNING: frozenset({AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.CANCELLED}),
    AttemptState.SUCCEEDED: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.CANCELLED: frozenset(),
    AttemptState.NOT_ACCEPTED: frozenset(),
    AttemptState.UNRESOLVED: frozenset(),
}

PARKED = frozenset({"capacity", "health", "model", "price", "quota"})
"""First words of the reasons that a Task is parked with."""
HELD = "pause: no attempt begins until it is resumed"
FOLLOWED = "pause: its attempt is followed to its end, and no other begins until it is resumed"
CANCELLING = "cancel: its attempt is followed to its end, and no other begins"
"""What a paused Task tells: see `Task.told_reason`."""
TERMINAL_TASKS = frozenset(state for state, moves in TASK_MOVES.items() if not moves)
TERMINAL_ATTEMPTS = frozenset(state for state, moves in ATTEMPT_MOVES.items() if not moves)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, as data (ERR)."""

    category: str
    scope: str
    retryable: bool
    code: str
    message: str
    retry_after_ms: int | None = None
    provider: str = ""
    provider_code: str = ""
    provider_message: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A stored output."""

    sha256: str
    media_type: str
    size_bytes: int
    width: int = 0
    height: int = 0
    """Pixels, as read from the file; 0 = not known."""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LateWord:
    """What the provider said of a job after its Attempt had ended by our own timeout (ATT-6, COST-12).

    `outcome` is `succeeded`, `failed`, `cancelled` or `not_accepted`; `booked_before` the cost until then.
    """

    outcome: str
    heard_at: datetime
    booked_before: Money | None = None
    artifacts: tuple[Artifact, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A Task may have been sent by a life of this database that it does not remember: between these moments."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a Task on one Supply."""

    id: str
    task_id: str
    number: int
    supply: str
    channel: str
    state: AttemptState
    client_token: str
    epoch: int
    round: int
    quote: Money
    lease_id: str
    price_rule: str = ""
    """The price rule that quoted it, its version, and the kind of quote, `exact` or `ceiling`; empty = not known."""
    price_version: int = 0
    quote_kind: str = ""
    channel_epoch: int = 0
    supply_epoch: int = 0
    catalog_revision: int = 0
    input: Mapping[str, Any] = field(default_factory=dict)
    """What was sent: transformed when degraded."""
    provider_task_id: str = ""
    failure: Failure | None = None
    cost: Money | None = None
    submitted_at: datetime | None = None
    accepted_at: datetime | None = None
    finished_at: datetime | None = None
    reconcile_count: int = 0
    uncertain_deadline: datetime | None = None
    reserved_at: datetime | None = None
    rule: str = ""
    """The degradation rule that shaped `input`; empty = sent as asked."""
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()
    counted: bool = True
    """Whether it counts against `max_attempts`: one whose bytes surely never left does not."""
    poll_failures: int = 0
    """Polls that failed in a row; they change nothing else (HLT-13)."""
    polls_failing_since: datetime | None = None
    cancel_tried: int = 0
    """How often the provider was asked to stop it."""
    cancel_refused: bool = False
    """The provider said that it runs to its end."""
    report_pending: bool = False
    """Its outcome is owed to health."""
    resolution: str = ""
    """A word, `accepted` or `not_accepted`, on an Attempt that ended unresolved: an operator's, or the provider's."""
    late_look_at: datetime | None = None
    """It ended by our own timeout: when the provider is asked once more what became of it."""
    late_looks: int = 0
    late: LateWord | None = None
    silent_since: int | None = None
    """The pulse from which the silence of the provider's records counts: see `silence`. None = it does not yet."""
    doubted: bool = False
    """Nothing was sent in this life: it stands for what a provider may have of one before the database was put back."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a Task gave."""

    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One request in Routing's care."""

    id: str
    request: Request
    kind: str
    state: TaskState
    created_at: datetime
    spent: Money
    run_id: str = ""
    node_id: str = ""
    revision: int = 1
    epoch: int = 0
    """Rises with every claim; a write by an older holder matches no row (ATT-7)."""
    waiting_reason: str = ""
    next_action_at: datetime | None = None
    attempts: tuple[Attempt, ...] = ()
    rounds: int = 0
    result: Result | None = None
    failure: Failure | None = None
    cancel_requested: bool = False
    finished_at: datetime | None = None
    cancel_reason: str = ""
    paused: bool = False
    """No new Attempt begins; the one that a provider has is followed (RUN-8)."""
    doubt: Doubt | None = None
    """Providers are asked before anything is sent for it; None = nobody else can have sent it."""
    round_key: str = ""
    """Digest of the last saved round's verdict and fates, and the gate that refused it; an equal one is not saved."""
    traceparent: str = ""
    """The trace that handed it over, in which all its steps are told; "" = none."""

    @staticmethod
    def begun(task_id: str, request: Request, kind: str, currency: str, now: datetime) -> "Task":
        """A new one, that nobody has looked at."""
        spent, reason = Money.zero(currency), "queue: not yet looked at"
        return Task(task_id, request, kind, TaskState.QUEUED, now, spent, waiting_reason=reason)

    @property
    def parked(self) -> bool:
        """Whether it waits to be woken: for what comes for many at once, so that not each looks for itself."""
        waits = self.state is TaskState.QUEUED and not self.paused
        return waits and self.waiting_reason.partition(":")[0] in PARKED

    @property
    def told_reason(self) -> str:
        """Why it waits, for those who ask: a pause comes before what it would wait for without."""
        if self.paused and self.state is TaskState.QUEUED:
            return HELD
        if self.paused and self.state is TaskState.RUNNING:
            return self.waiting_reason or (CANCELLING if self.cancel_requested else FOLLOWED)
        return self.waiting_reason

    @property
    def live(self) -> Attempt | None:
        """The one Attempt that has not ended; there is never a second (SEL-25)."""
        return next((item for item in reversed(self.attempts) if item.state not in TERMINAL_ATTEMPTS), None)

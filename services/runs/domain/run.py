"""Runs, Nodes and events as values, and the table of a Run's states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from libs.faults.registry import CODES
from libs.kernel.money import Money
from services.runs.domain.plan import MAIN


class RunState(StrEnum):
    """Where a Run stands (RUN-1)."""

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DEAD_LETTER = "dead_letter"


class NodeState(StrEnum):
    """Where a Node stands (RUN-2)."""

    PENDING = "pending"
    LEASED = "leased"
    RUNNING = "running"
    WAITING_HUMAN = "waiting_human"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    COMPENSATING = "compensating"
    CANCELLED = "cancelled"
    STALE = "stale"


class Decision(StrEnum):
    """What a person may decide (HUMAN-2)."""

    APPROVE = "approve"
    REJECT = "reject"
    REROUTE = "reroute"
    CHANGE_INPUT = "change_input"
    RAISE_BUDGET = "raise_budget"
    WAIVE = "waive"
    STOP = "stop"


_ENDS = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED, RunState.DEAD_LETTER})
RUN_MOVES: Mapping[RunState, frozenset[RunState]] = {
    RunState.PENDING: _ENDS | {RunState.RUNNING, RunState.PAUSED},
    RunState.RUNNING: _ENDS | {RunState.PAUSED},
    RunState.PAUSED: _ENDS | {RunState.RUNNING, RunState.PENDING},
    # A redrive is the one way back (DLQ-1, EVENT-1).
    RunState.SUCCEEDED: frozenset({RunState.RUNNING}),
    RunState.FAILED: frozenset({RunState.RUNNING}),
    RunState.TIMED_OUT: frozenset({RunState.RUNNING}),
    RunState.CANCELLED: frozenset(),
    RunState.DEAD_LETTER: frozenset({RunState.RUNNING}),
}

LIVE_STATES = frozenset({RunState.PENDING, RunState.RUNNING, RunState.PAUSED})
"""The ticks look at these; of a paused one they follow what providers have."""
MOVING_STATES = LIVE_STATES - {RunState.PAUSED}
RESTING_STATES = frozenset(RunState) - {RunState.PENDING, RunState.RUNNING}
"""Terminal or paused: a join answers and a stream ends."""
TERMINAL_STATES = RESTING_STATES - {RunState.PAUSED}
PRUNABLE_STATES = TERMINAL_STATES - {RunState.DEAD_LETTER}
"""The history of a case file stays for as long as the Run (DLQ-1)."""

TERMINAL_KINDS: Mapping[RunState, str] = {
    RunState.SUCCEEDED: "run_completed",
    RunState.FAILED: "run_failed",
    RunState.TIMED_OUT: "run_timed_out",
    RunState.CANCELLED: "run_cancelled",
    RunState.DEAD_LETTER: "run_dead_lettered",
}

ENDED_NODES = frozenset({NodeState.SUCCEEDED, NodeState.FAILED, NodeState.CANCELLED})
AT_WORK = frozenset({NodeState.LEASED, NodeState.RUNNING})
WAITING_TO_START = frozenset({NodeState.PENDING, NodeState.STALE})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something ended without a result."""

    category: str
    scope: str
    retryable: bool
    code: str
    message: str

    @classmethod
    def of(cls, code: str, message: str) -> Self:
        """One of our own, with what the registry says of its code. KeyError for a code that is not in it."""
        known = CODES[code]
        return cls(known.category.value, known.scope.value, known.retryable, code, message)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An output, addressed by its content."""

    sha256: str
    media_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a Run or a node gave; a degraded one says what was lost (TIER-6)."""

    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)
    degraded: bool = False
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a Run used. `cost` is None until its Task has told one."""

    cost: Money | None = None
    attempts: int = 0
    supply: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Money reserved for one try of a node; it stays until it is settled or released (COST-12)."""

    id: str
    budget_id: str
    amount: Money
    attempts: int
    cost_before: Money | None = None
    attempts_before: int = 0
    """What the node had cost and used when it was taken: the rest is what it is settled at."""


@dataclass(frozen=True, slots=True)
class Node:
    """One vertex of a Run.

    `task_id` is chosen before the Task exists, so that submitting twice is one Task. `tries` counts starts and fences
    late answers: what belongs to an earlier try is dropped. `cost` and `attempts_made` are over all Tasks.
    """

    id: str
    kind: str
    task_id: str = ""
    state: NodeState = NodeState.PENDING
    waiting_reason: str = ""
    artifacts: tuple[Artifact, ...] = ()
    failure: Failure | None = None
    attempts: Mapping[str, str] = field(default_factory=dict)
    """Attempt id -> the state that events have told, of the present Task."""
    parent: str = ""
    shot_class: str = ""
    item: Mapping[str, Any] = field(default_factory=dict)
    """Of a map's item: the fields that it was declared with or that its source gave."""
    items: tuple[str, ...] = ()
    """Of a map: the ids of the nodes that its items became, in order."""
    released: tuple[str, ...] = ()
    """Of a map: the classes whose canaries let the rest follow."""
    tries: int = 0
    attempts_made: int = 0
    allowance: int = 0
    """Attempts that were made before the last redrive: the budget of attempts counts from there."""
    input: Mapping[str, Any] = field(default_factory=dict)
    """Resolved at the start of the present try."""
    input_hash: str = ""
    steered: int = 0
    """How many of the steering inputs of its namespace its present input holds."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields that people have changed; merged into every later input."""
    supply: str = ""
    """The only Supply that may serve it; "" = as the policy chooses."""
    hold: Hold | None = None
    refused: bool = False
    refused_by: str = ""
    """The root cause of the review that asks for more: whoever decides it decides about this node."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What it asked the level for that refused it, by dimension; {} = only a person lets it ask again."""
    fewer: bool = False
    """A soft limit made its present input ask for one variant (COST-10)."""
    cost: Money | None = None
    made: tuple[Artifact, ...] = ()
    """Written by the present try."""
    results: Mapping[str, Result] = field(default_factory=dict)
    """Input hash -> what it gave for that (RUN-5)."""
    failures: tuple[Failure, ...] = ()
    """Of earlier tries, oldest first."""
    forgiven: int = 0
    """How many of them were before the last redrive: tries that found nobody are counted from there."""
    task_ids: tuple[str, ...] = ()
    retry_at: datetime | None = None
    began_at: datetime | None = None
    """First start since creation or the last redrive: the budget of wall time counts from there."""
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What the caller of a single generation asked for, kept as it came."""

    model: str
    input: Mapping[str, Any]
    degradation: str = ""
    billing_mode: str = ""
    priority: str = ""
    deadline: datetime | None = None
    callback_url: str = ""


@dataclass(frozen=True, slots=True)
class Steering:
    """An accepted input that no node has consumed yet. `sequence` counts the inputs of its Run (STEER-1)."""

    id: str
    sequence: int
    kind: str
    data: Mapping[str, Any]
    accepted_at: datetime
    source_event_id: str = ""
    """The id of its root, if it was migrated over a pause (STEER-4)."""


@dataclass(frozen=True, slots=True)
class Steered:
    """A consumed input: every later start in its namespace merges it."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """An open review: what a person is asked, with what is needed to answer (HUMAN-1)."""

    id: str
    node: str
    kind: str
    question: str
    cause: str
    subject_hash: str
    decisions: tuple[Decision, ...]
    deadline: datetime
    deputy: str
    rank: str
    opened_at: datetime
    span_s: float  # seconds that each addressee is given
    root_cause: str = ""
    subjects: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    failures: tuple[Failure, ...] = ()
    remedies: tuple[str, ...] = ()
    spent: Money | None = None
    assignee: str = ""
    escalations: int = 0
    input: Mapping[str, Any] = field(default_factory=dict)
    claimed_at: datetime | None = None
    """When the person took it who has it now; None = nobody did."""
    subject: Any = None  # what a gate declares to be decided, as `asking.shown` cuts it
    dimension: str = ""
    """Of a question about a limit: what is refused, `cost`, `attempts`, `review_minutes` or `deadline`."""


@dataclass(frozen=True, slots=True)
class Due:
    """A question that nobody is asked yet: minutes of a reviewer are to be held for it first (COST-10). `lacks` as of a
    node."""

    question: Question
    minutes: int
    refused_by: str = ""
    """The root cause of the review that asks for more; "" = they are being asked for."""
    lacks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reserved:
    """Minutes of a reviewer that are held for a question; `used` once that is over, 0 = they only come free."""

    hold_id: str
    node: str
    minutes: int
    used: int | None = None


@dataclass(frozen=True, slots=True)
class Raising:
    """A limit that a person has raised, and that the ledger has not been told yet."""

    review_id: str
    node: str
    budget_id: str
    dimension: str
    limit: Mapping[str, Any]
    """As the decision said it: `{currency, amount}`, `{attempts}` or `{review_minutes}`."""
    who: str
    comment: str


@dataclass(frozen=True, slots=True)
class Run:
    """One execution. `revision` guards writes; `last_sequence` numbers its newest event.

    All but these two, `production` and `order` is what the events tell (EVENT-3).
    """

    id: str
    tenant: str
    state: RunState
    order: Order
    nodes: Mapping[str, Node]
    created_at: datetime
    usage: Usage = Usage()
    labels: Mapping[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    failure: Failure | None = None
    result: Result | None = None
    cancel_requested: bool = False
    production: Mapping[str, Any] | None = None
    """The document; None for a single generation."""
    budget_id: str = ""
    budget_parent: str = ""  # of its tenant's quota when it came to be; "" = what the document names, or none
    commands: tuple[str, ...] = ()
    """Ids of the commands that were applied, newest last (RUN-8)."""
    steering: tuple[Steering, ...] = ()
    steering_count: int = 0
    steered: Mapping[str, tuple[Steered, ...]] = field(default_factory=dict)
    """Namespace (a map or a node) -> what it consumed, in order."""
    questions: Mapping[str, Question] = field(default_factory=dict)
    due: Mapping[str, Due] = field(default_factory=dict)
    """Questions that wait for minutes, by id."""
    reserved: Mapping[str, Reserved] = field(default_factory=dict)
    """By question: minutes that are held, until they are booked or free again."""
    review_minutes: int = 0  # booked so far
    raising: tuple[Raising, ...] = ()
    """Decided, in order; no Hold is asked for before these are done."""
    decided_at: tuple[datetime, ...] = ()
    """When people decided last, oldest first."""
    redrives: int = 0
    backpressure: str = ""
    soft: bool = False
    soft_at: tuple[str, ...] = ()
    """Whether a soft limit of its budget was reached, and the levels at which it was told so."""
    traceparent: str = ""  # the trace that created it, in which all that is done for it is told
    revision: int = 1
    last_sequence: int = 0

    @property
    def node(self) -> Node:
        """The only node of a single generation."""
        return self.nodes[MAIN]

    @property
    def asked(self) -> Mapping[str, Question]:
        """All that is asked, or will be once there are minutes for it."""
        return {**self.questions, **{name: due.question for name, due in self.due.items()}}

    @property
    def awaited(self) -> frozenset[str]:
        """The nodes for whose questions minutes are awaited."""
        return frozenset(due.question.node for due in self.due.values())

    @property
    def name(self) -> str:
        """What it makes, for people: the model, or the name of the production."""
        return self.order.model or str((self.production or {}).get("production", ""))


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it has a number."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """One committed fact of a Run's history (EVENT-1)."""

    id: str
    run_id: str
    sequence: int
    kind: str
    data: Mapping[str, Any]
    created_at: datetime

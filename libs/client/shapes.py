"""What the server tells, as far as callers need it. Fields that a later release adds are ignored; states are texts."""

from datetime import datetime
from typing import Any

from msgspec import Struct, field

RESTING = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter", "paused"})
"""States in which nothing happens by itself; a later release may have more, and ends its streams there too."""


class Amount(Struct, frozen=True):
    """Money: an exact decimal amount of one currency."""

    currency: str
    amount: str


class Failure(Struct, frozen=True):
    """Why something ended without a result."""

    code: str
    message: str = ""
    retryable: bool = False
    category: str = ""
    scope: str = ""


class Artifact(Struct, frozen=True):
    """A stored file; `url` is a path of the server."""

    sha256: str
    media_type: str
    bytes: int
    url: str


class RunResult(Struct, frozen=True):
    """What a Run gave; a degraded one says what was lost."""

    artifacts: list[Artifact] = field(default_factory=list)
    output: dict[str, Any] = field(default_factory=dict)
    degraded: bool = False
    requested_profile: str | None = None
    actual_profile: str | None = None
    dropped_inputs: list[str] = field(default_factory=list)


class Node(Struct, frozen=True):
    """One vertex of a Run. `parent` is the map that it is an item of; `attempts` and `cost` are over all its tries."""

    id: str
    kind: str = ""
    status: str = ""
    parent: str | None = None
    task_id: str | None = None
    waiting_reason: str | None = None
    artifacts: list[Artifact] = field(default_factory=list)
    error: Failure | None = None
    shot_class: str | None = None
    tries: int = 0
    attempts: int = 0
    cost: Amount | None = None
    review_id: str | None = None
    output: dict[str, Any] = field(default_factory=dict)


class Run(Struct, frozen=True):
    """One execution. Success is `status == "succeeded"`, not the 200 that tells of it.

    A production has its name in `production` and no `model`. `backpressure` says why producing waits for people.
    """

    id: str
    status: str
    model: str | None = None
    production: str | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    error: Failure | None = None
    result: RunResult | None = None
    nodes: list[Node] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    pending_steering: int = 0
    backpressure: str | None = None

    def node(self, node_id: str) -> Node:
        """The node of that id, `map/item` for an item. KeyError for one that is not there."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)


class Steered(Struct, frozen=True):
    """An accepted input; `sequence` counts the inputs of its Run. `nodes` declare its kind: where there are none nobody
    will take it; `kinds` are those that nodes of the Run declare."""

    steering_event_id: str
    sequence: int
    nodes: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


class AffectedNode(Struct, frozen=True):
    """A node that a redrive reaches. `effect`: redriven, stale or kept; `cost`: at most, None where nobody can say."""

    node: str
    effect: str
    cost: Amount | None = None


class Redriven(Struct, frozen=True):
    """What a redrive would do: the Run as it is, the nodes that it reaches, what they may cost together at most."""

    run: Run
    affected: list[AffectedNode] = field(default_factory=list)
    cost: Amount | None = None


class Review(Struct, frozen=True):
    """A question to a person, with what is needed to answer it. `decisions` are those that are possible."""

    id: str
    run_id: str
    node: str
    status: str
    kind: str = ""
    tenant: str = ""
    question: str = ""
    cause: str = ""
    subject_hash: str | None = None
    artifacts: list[Artifact] = field(default_factory=list)
    subject_nodes: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    spent: Amount | None = None
    decisions: list[str] = field(default_factory=list)
    remedies: list[str] = field(default_factory=list)
    deadline: datetime | None = None
    assignee: str | None = None
    deputy: str | None = None
    escalations: int = 0
    root_cause: str = ""
    rank: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    finished_at: datetime | None = None
    decision: str | None = None
    decided_by: str | None = None
    comment: str | None = None


class DeadLetter(Struct, frozen=True):
    """The case file of a node that ended without a result. `desk` is where it should be looked at."""

    id: str
    run_id: str
    node: str
    tenant: str = ""
    error: Failure | None = None
    created_at: datetime | None = None
    task_ids: list[str] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    cost: Amount | None = None
    input: dict[str, Any] = field(default_factory=dict)
    desk: str = ""
    artifacts: list[Artifact] = field(default_factory=list)
    redriven_at: datetime | None = None
    redrive_reason: str | None = None


class Event(Struct, frozen=True):
    """One committed fact of a Run's history. Kinds that are not known are passed on like all others."""

    sequence: int
    kind: str
    run_id: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None


class CallResult(Struct, frozen=True):
    """What a synchronous call gave."""

    id: str
    model: str
    kind: str
    output: dict[str, Any] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    degraded: bool = False
    requested_profile: str | None = None
    actual_profile: str | None = None
    dropped_inputs: list[str] = field(default_factory=list)
    cached: bool = False
    usage: dict[str, Any] = field(default_factory=dict)


class Model(Struct, frozen=True):
    """A Public Model that the key may use."""

    id: str
    kind: str = ""
    profile: str | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    price_range: list[dict[str, Any]] = field(default_factory=list)
    degradations: list[dict[str, Any]] = field(default_factory=list)

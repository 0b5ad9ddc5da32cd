"""The public shapes of commands on Runs, of reviews and of dead letters; the laws of `shapes` hold."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from services.edge.domain.shapes import Amount, ArtifactRef, Failure, Run


class Steered(Struct, frozen=True):
    """An accepted input; `sequence` counts the inputs of its Run.

    `nodes` declare its kind, a map in the place of its items; none = it is kept, and nobody will take it. `kinds` are
    all that nodes of the Run declare.
    """

    steering_event_id: str
    sequence: int
    nodes: list[str]
    kinds: list[str]


class AffectedNode(Struct, frozen=True):
    """A node that a redrive reaches. `effect`: redriven, stale or kept; `cost`: what it may cost at most."""

    node: str
    effect: str
    cost: Amount | None


class TenantRun(Run, frozen=True, kw_only=True):
    """A Run as its tenant sees it, and whose it is: for operators."""

    tenant: str


class TenantRunPage(Struct, frozen=True):
    """Runs of one tenant or of all, newest first."""

    runs: list[TenantRun]
    next_page_token: str


class Redriven(Struct, frozen=True):
    """What a redrive would do: the Run as it is, the nodes reached, what they may cost together."""

    run: Run
    affected: list[AffectedNode]
    cost: Amount | None


class Review(Struct, frozen=True):
    """A question to a person. `status`: open, claimed, decided or withdrawn; `decision` is null until it is decided.

    `subject` is what a gate declares to be decided, long texts cut; null = nothing but files, or too large to show.
    """

    id: str
    run_id: str
    node: str
    tenant: str
    kind: str
    status: str
    question: str
    cause: str
    subject_hash: str | None
    artifacts: list[ArtifactRef]
    subject_nodes: list[str]
    failures: list[Failure]
    spent: Amount | None
    decisions: list[str]
    remedies: list[str]
    deadline: datetime | None
    assignee: str | None
    deputy: str | None
    escalations: int
    root_cause: str
    rank: str
    input: dict[str, Any]
    subject: Any
    created_at: datetime | None
    finished_at: datetime | None
    decision: str | None
    decided_by: str | None
    comment: str | None


class ReviewList(Struct, frozen=True):
    """Reviews in the order in which they should be looked at."""

    reviews: list[Review]
    next_page_token: str


class DeadLetter(Struct, frozen=True):
    """The case file of a node that ended without a result. `attempts` as they were told in the Run's history."""

    id: str
    run_id: str
    node: str
    tenant: str
    error: Failure | None
    created_at: datetime | None
    task_ids: list[str]
    attempts: list[dict[str, Any]]
    cost: Amount | None
    input: dict[str, Any]
    desk: str
    artifacts: list[ArtifactRef]
    redriven_at: datetime | None
    redrive_reason: str | None


class DeadLetterList(Struct, frozen=True):
    """Case files, newest first."""

    dead_letters: list[DeadLetter]
    next_page_token: str

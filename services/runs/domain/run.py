"""Runs, Nodes and events as values, and the table of a Run's states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from libs.kernel.money import Money


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
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


RUN_MOVES: Mapping[RunState, frozenset[RunState]] = {
    RunState.PENDING: frozenset({RunState.RUNNING, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED}),
    RunState.RUNNING: frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED}),
    RunState.PAUSED: frozenset(),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.TIMED_OUT: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.DEAD_LETTER: frozenset(),
}

LIVE_STATES = frozenset({RunState.PENDING, RunState.RUNNING})
RESTING_STATES = frozenset(RunState) - LIVE_STATES
"""Terminal or paused: a join answers and a stream ends."""
TERMINAL_STATES = RESTING_STATES - {RunState.PAUSED}

TERMINAL_KINDS: Mapping[RunState, str] = {
    RunState.SUCCEEDED: "run_completed",
    RunState.FAILED: "run_failed",
    RunState.TIMED_OUT: "run_timed_out",
    RunState.CANCELLED: "run_cancelled",
    RunState.DEAD_LETTER: "run_dead_lettered",
}

MAIN = "main"
"""The only node of a single generation."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something ended without a result."""

    category: str
    scope: str
    retryable: bool
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """An output, addressed by its content."""

    sha256: str
    media_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a Run gave; a degraded one says what was lost (TIER-6)."""

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
class Node:
    """One vertex of a Run. `task_id` is chosen before the Task exists, so that submitting twice is one Task."""

    id: str
    kind: str
    task_id: str
    state: NodeState = NodeState.PENDING
    waiting_reason: str = ""
    artifacts: tuple[Artifact, ...] = ()
    failure: Failure | None = None
    task_revision: int = 0
    attempts: Mapping[str, str] = field(default_factory=dict)
    """Attempt id -> the state that events have told."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the caller asked for, kept as it came."""

    model: str
    input: Mapping[str, Any]
    degradation: str = ""
    billing_mode: str = ""
    priority: str = ""
    deadline: datetime | None = None
    callback_url: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution. `revision` guards writes; `last_sequence` numbers its newest event."""

    id: str
    tenant: str
    state: RunState
    order: Order
    node: Node
    created_at: datetime
    usage: Usage
    labels: Mapping[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    failure: Failure | None = None
    result: Result | None = None
    cancel_requested: bool = False
    revision: int = 1
    last_sequence: int = 0


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

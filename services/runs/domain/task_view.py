"""A Task as runs sees it: routing's facts, nothing of its reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.kernel.money import Money
from services.runs.domain.run import Artifact, Failure


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One try of the Task."""

    id: str
    number: int
    supply: str
    channel: str
    state: str
    quote: Money | None
    cost: Money | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class TaskView:
    """The Task at one revision.

    `state` is routing's word: queued, dispatching, running, succeeded, failed or cancelled.
    """

    id: str
    revision: int
    state: str
    cost: Money | None
    waiting_reason: str = ""
    attempts: tuple[AttemptView, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    output: Mapping[str, Any] = field(default_factory=dict)
    degraded: bool = False
    requested_profile: str = ""
    actual_profile: str = ""
    dropped_inputs: tuple[str, ...] = ()
    failure: Failure | None = None

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


class Run(Struct, frozen=True):
    """One execution. Success is `status == "succeeded"`, not the 200 that tells of it."""

    id: str
    status: str
    model: str | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    error: Failure | None = None
    result: RunResult | None = None
    nodes: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


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

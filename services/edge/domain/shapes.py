"""The public JSON shapes, exactly as they are answered; the OpenAPI document is drawn from them.

Laws of this file: a field is never renamed or removed; what is not known is null, never absent (a
`next_page_token` is empty on the last page); money is a decimal string with its currency; times are RFC 3339 in UTC.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct


class Amount(Struct, frozen=True):
    """Money: an exact decimal amount of one currency."""

    currency: str
    amount: str


class Failure(Struct, frozen=True):
    """Why something ended without a result. `message` ends with the provider's own words, redacted, if it had any."""

    code: str
    message: str
    retryable: bool
    category: str
    scope: str


class ArtifactRef(Struct, frozen=True):
    """A stored file; `url` is where its bytes are read."""

    sha256: str
    media_type: str
    bytes: int
    url: str


class RunResult(Struct, frozen=True):
    """What a Run gave; a degraded one says what was lost."""

    artifacts: list[ArtifactRef]
    output: dict[str, Any]
    degraded: bool
    requested_profile: str | None
    actual_profile: str | None
    dropped_inputs: list[str]


class RunUsage(Struct, frozen=True):
    """What a Run used so far; `cost` is null until something was spent."""

    cost: Amount | None
    attempts: int
    supply: str | None


class RunNode(Struct, frozen=True):
    """One vertex of a Run. `parent` is the map that it is an item of; `attempts` and `cost` are over all its tries."""

    id: str
    kind: str
    status: str
    task_id: str | None
    waiting_reason: str | None
    artifacts: list[ArtifactRef]
    error: Failure | None
    parent: str | None = None
    shot_class: str | None = None
    needs: list[str] = []
    input_hash: str | None = None
    tries: int = 0
    attempts: int = 0
    cost: Amount | None = None
    review_id: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_at: datetime | None = None
    output: dict[str, Any] = {}


class Run(Struct, frozen=True):
    """One execution. `status`: pending, running, paused, succeeded, failed, timed_out, cancelled or dead_letter.

    `production` names the production that it is of, and `model` is null then. `backpressure` says why producing waits
    for people.
    """

    id: str
    status: str
    model: str | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: Failure | None
    result: RunResult | None
    usage: RunUsage
    nodes: list[RunNode]
    labels: dict[str, str]
    production: str | None = None
    budget_id: str | None = None
    pending_steering: int = 0
    backpressure: str | None = None


class RunPage(Struct, frozen=True):
    """Runs, newest first."""

    runs: list[Run]
    next_page_token: str


class RunEvent(Struct, frozen=True):
    """One committed fact of a Run's history; new kinds may come."""

    id: str
    run_id: str
    sequence: int
    kind: str
    data: dict[str, Any]
    created_at: datetime | None


class EventPage(Struct, frozen=True):
    """Events in order, beginning right after the cursor."""

    events: list[RunEvent]


class LateWord(Struct, frozen=True):
    """The provider's word after an Attempt had ended by our own timeout; `cost` of the Attempt is what it says now."""

    outcome: str
    heard_at: datetime | None
    artifacts: list[ArtifactRef]
    error: Failure | None
    cost_before: Amount | None


class Attempt(Struct, frozen=True):
    """One try of a Task on one Supply."""

    id: str
    number: int
    supply: str
    channel: str
    state: str
    client_token: str
    provider_task_id: str | None
    error: Failure | None
    quote: Amount | None
    cost: Amount | None
    submitted_at: datetime | None
    accepted_at: datetime | None
    finished_at: datetime | None
    late: LateWord | None


class Task(Struct, frozen=True):
    """One request in routing's care. `selection_rounds` counts the rounds on record.

    `cancel_requested`: a cancel is on record; a job that a provider has begun may still end otherwise.
    """

    id: str
    run_id: str | None
    node_id: str | None
    model: str
    status: str
    waiting_reason: str | None
    attempts: list[Attempt]
    selection_rounds: int
    cancel_requested: bool


class UncertainAttempt(Struct, frozen=True):
    """An Attempt of which nobody knows yet whether the provider took it."""

    id: str
    task_id: str
    run_id: str | None
    tenant: str
    number: int
    supply: str
    channel: str
    state: str
    client_token: str
    quote: Amount | None
    submitted_at: datetime | None
    reconcile_count: int
    uncertain_deadline: datetime | None


class UncertainList(Struct, frozen=True):
    """Attempts that wait for reconciliation or for an operator's word."""

    attempts: list[UncertainAttempt]
    next_page_token: str


class PolicyRef(Struct, frozen=True):
    """The policy in force, at its revision."""

    id: str
    revision: int


class Candidate(Struct, frozen=True):
    """The fate of one bound Supply: chosen, ranked or dropped, with the figures that decided."""

    supply: str
    tier: str
    fate: str
    rank: int | None
    step: str | None
    reason: str | None
    figures: str | None
    quote: Amount | None
    health: str | None
    success_rate: float | None
    free_slots: int | None
    priority: int


class Selection(Struct, frozen=True):
    """One frozen decision, explained in four steps."""

    round: int
    tier: str | None
    policy: PolicyRef
    baseline: Amount | None
    spent: Amount | None
    candidates: list[Candidate]
    chosen: str | None
    steps: list[str]


class SelectionList(Struct, frozen=True):
    """Every selection round of a Task, oldest first."""

    selections: list[Selection]


class Model(Struct, frozen=True):
    """A Public Model: OpenAI's fields, and what it takes, costs and may lose."""

    id: str
    object: str
    created: int
    owned_by: str
    kind: str
    profile: str | None
    limits: dict[str, Any]
    price_range: list[dict[str, Any]]
    degradations: list[dict[str, Any]]


class ModelList(Struct, frozen=True):
    """The models that this key may use."""

    object: str
    data: list[Model]


class SubjectHealth(Struct, frozen=True):
    """The breaker of one Channel or Supply. `effective_concurrency`: slots that it leaves open; null = unlimited."""

    id: str
    state: str
    epoch: int
    recovery_successes: int
    effective_concurrency: int | None
    since: datetime | None
    cooldown_until: datetime | None
    success_rate: float | None
    success_rate_low: float | None
    success_rate_high: float | None
    samples: int
    reason: str | None


class Health(Struct, frozen=True):
    """Every Channel and Supply at one moment."""

    channels: list[SubjectHealth]
    supplies: list[SubjectHealth]


class SubjectCapacity(Struct, frozen=True):
    """Slots of one Channel or Supply. `configured` 0 = no gate; `effective` null = unlimited.

    `adaptive` are the slots that the provider's answers led to, null = no such limit. `frozen_until` is until when it
    asked not to be asked.
    """

    id: str
    configured: int
    effective: int | None
    in_use: int
    rpm_used: int
    tpm_used: int
    adaptive: int | None = None
    frozen_until: datetime | None = None


class Lease(Struct, frozen=True):
    """A reserved slot of a Channel and a Supply together."""

    id: str
    holder: str
    kind: str
    channel: str
    supply: str
    reserved_at: datetime | None
    expires_at: datetime | None


class Capacity(Struct, frozen=True):
    """The present figures of every Channel and Supply, and the live leases."""

    channels: list[SubjectCapacity]
    supplies: list[SubjectCapacity]
    leases: list[Lease]


class CatalogChange(Struct, frozen=True):
    """One difference between two catalogues: created, changed or retired."""

    kind: str
    id: str
    change: str
    details: list[str]


class Publication(Struct, frozen=True):
    """Whether a model is open to callers, and if not, every reason why."""

    model: str
    published: bool
    reasons: list[str]


class Applied(Struct, frozen=True):
    """What applying a catalogue file changed."""

    revision: int
    changes: list[CatalogChange]
    publications: list[Publication]


class CatalogDiff(Struct, frozen=True):
    """What applying a catalogue file would change."""

    changes: list[CatalogChange]


class CatalogObject(Struct, frozen=True):
    """One object of the catalogue at its newest revision, as declared.

    In a list, a supply has its `evidence` as an alternative, and a model that is not published every reason against it.
    """

    kind: str
    id: str
    revision: int
    spec: dict[str, Any]
    enabled: bool
    published: bool
    retired: bool
    created_at: datetime | None
    evidence: str | None = None
    reasons: list[str] = []


class Catalog(Struct, frozen=True):
    """The catalogue in force."""

    revision: int
    objects: list[CatalogObject]


class Standing(Struct, frozen=True):
    """How this process is."""

    status: str

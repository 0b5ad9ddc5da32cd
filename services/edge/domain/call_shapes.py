"""The public shapes of synchronous calls: laws as in `shapes`. Times of a call are milliseconds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from services.edge.domain.shapes import Amount, ArtifactRef, Failure, Selection


class CallUsage(Struct, frozen=True):
    """What a call used; figures that the provider did not report are null. `cost` covers every try."""

    cost: Amount | None
    attempts: int
    supply: str | None
    input_tokens: int | None
    cached_input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None


class CallResult(Struct, frozen=True):
    """What a call gave; a degraded one says what was lost. `id` leads to `GET /v1/calls/{id}`."""

    id: str
    model: str
    kind: str
    artifacts: list[ArtifactRef]
    output: dict[str, Any]
    degraded: bool
    requested_profile: str | None
    actual_profile: str | None
    dropped_inputs: list[str]
    cached: bool
    usage: CallUsage


class OcrResult(Struct, frozen=True):
    """Text read from a picture. A block is `{text, box: [x, y, width, height], confidence, kind}`, in pixels."""

    id: str
    model: str
    text: str
    blocks: list[dict[str, Any]]


class Usage(Struct, frozen=True):
    """What a provider reported of one try; null = it did not say."""

    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    images: int | None
    characters: int | None
    pages: int | None
    duration_s: float | None


class CallAttempt(Struct, frozen=True):
    """One try of a call. `state`: sent, succeeded, failed, congested (429: no try is used up), unknown or abandoned."""

    id: str
    number: int
    supply: str
    channel: str
    state: str
    error: Failure | None
    quote: Amount | None
    cost: Amount | None
    possible_charge: bool
    sent_at: datetime | None
    latency_ms: float
    time_to_first_token_ms: float | None
    reserved_tokens: int
    usage: Usage | None
    provider_request_id: str | None
    selection_round: int


class CallTimes(Struct, frozen=True):
    """Where the time went: wall = productive (tries) + stall (429s, waiting) + overhead (our own work)."""

    wall_ms: float
    productive_ms: float
    stall_ms: float
    overhead_ms: float


class ListedCall(Struct, frozen=True):
    """A call on record. `status`: running, succeeded, failed or abandoned (its caller left before it ended)."""

    id: str
    model: str
    kind: str
    status: str
    error: Failure | None
    attempts: list[CallAttempt]
    supply: str | None
    cached: bool
    cost: Amount | None
    degraded: bool
    requested_profile: str | None
    actual_profile: str | None
    dropped_inputs: list[str]
    times: CallTimes
    usage: Usage | None
    artifacts: list[ArtifactRef]
    session_id: str | None
    parent_call_id: str | None
    created_at: datetime | None
    finished_at: datetime | None


class Call(ListedCall, frozen=True):
    """A call with why each Supply was chosen."""

    selections: list[Selection]


class CallPage(Struct, frozen=True):
    """Calls of the key's tenant that have ended, the newest end first."""

    calls: list[ListedCall]
    next_page_token: str


class TenantCall(ListedCall, frozen=True, kw_only=True):
    """A call as its tenant sees it, and whose it is: for operators."""

    tenant: str


class TenantCallPage(Struct, frozen=True):
    """Calls of one tenant or of all that have ended, the newest end first."""

    calls: list[TenantCall]
    next_page_token: str


class CallFilter(Struct, frozen=True):
    """Which calls; empty fields ask for nothing. `since` is part of the time asked for, `until` is not."""

    model: str
    statuses: Sequence[str]
    session_id: str
    since: datetime | None
    until: datetime | None

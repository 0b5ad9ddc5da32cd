"""What an adapter understood of an answer. Failures of a *call* are raised as Fault; failures of a *job* are values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from libs.faults.fault import Fault
from libs.kernel.money import Money
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Job
from services.provider_adapter.domain.measures import UNMEASURED, Measures

WORDS = "words"
"""The family of what was said: text and JSON, which are stored as they came."""


class JobState(StrEnum):
    """Where a job stands at its provider."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Media:
    """One output: `url` to fetch it, or `data` when it came within the answer. `family` is image, video, audio, or
    `WORDS` for what always has `data`.

    `keyed` says that only the channel's own key opens the URL. It may then be a path, which is appended to the
    channel's base URL; the key goes to the origin of that base URL and nowhere else.
    """

    family: str
    url: str = ""
    data: bytes = b""
    media_type: str = ""
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What a finished job gave, before its media are stored. `usage` is in the provider's own units, `reported_cost`
    what it says that it charged."""

    media: tuple[Media, ...]
    output: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    reported_cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """One output in blobs."""

    sha256: str
    media_type: str
    size_bytes: int
    measures: Measures = UNMEASURED


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished job gave, stored, in the provider's order."""

    artifacts: tuple[Stored, ...]
    output: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    reported_cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The provider took the job: it has an id there, or it is done (`made`)."""

    provider_task_id: str = ""
    made: Made | None = None
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Polled:
    """Where a job stands. `made` with SUCCEEDED, `failure` with FAILED.

    `further` is the question that remains where a provider tells the state at one place and the result at another.
    """

    state: JobState
    made: Made | None = None
    failure: Fault | None = None
    unknown_fields: tuple[str, ...] = ()
    further: "Further | None" = None


@dataclass(frozen=True, slots=True)
class Further:
    """A second question of the same poll, and how its answer is read. Safe to repeat, like the first."""

    request: HttpRequest
    parse: Callable[[HttpResponse, Job], Polled]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Whether the job will not run to its end."""

    cancelled: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a provider's records. Times are seconds since the epoch.

    `found` is the id of the job that carries our token. `seen` counts records, `total` is what the provider says there
    is (None: it does not say). `oldest_s` is the time of the oldest record on the page, `descending` whether the page
    runs from new to old, `unmarked_s` the times of records that may be ours though nothing proves it: they carry no
    token at all. `likely` are the ids of the same records in the same order, for a person to compare.

    `after` is the provider's mark of where the next page begins, `ended` says that there is none.
    """

    found: str = ""
    seen: int = 0
    total: int | None = None
    oldest_s: float | None = None
    newest_s: float | None = None
    descending: bool = True
    unmarked_s: tuple[float, ...] = ()
    likely: tuple[str, ...] = ()
    after: str = ""
    ended: bool = False
    unknown_fields: tuple[str, ...] = ()


class Verdict(StrEnum):
    """What a provider's records say of an unanswered submission."""

    ACCEPTED = "accepted"
    NOT_ACCEPTED = "not_accepted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The verdict, the id with ACCEPTED (or the result, where it came with the answer), and where it was looked up."""

    verdict: Verdict
    provider_task_id: str = ""
    evidence: str = ""
    result: Result | None = None

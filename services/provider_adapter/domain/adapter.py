"""What an adapter is: a manifest, pairs of pure functions, and a table of faults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from libs.faults.fault import Fault
from services.provider_adapter.domain.calls import ANSWERED_KINDS, Answered, StreamReader
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Endpoint, Job
from services.provider_adapter.domain.outcomes import Cancelled, JobState, Listed, Polled, Submitted
from services.provider_adapter.domain.table import FaultTable


@dataclass(frozen=True, slots=True)
class Auth:
    """The header that carries the secret, and what stands before it."""

    header: str = "Authorization"
    prefix: str = "Bearer "

    def told(self) -> str:
        """For a person: `Authorization: Bearer`, `x-api-key`."""
        return f"{self.header}: {self.prefix.strip()}" if self.prefix else self.header


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a dialect can do.

    `reconcile_by` is how an unanswered submission is resolved: `list` or `lookup` (by part `reconcile`),
    `idempotency_key` (the submission again, with the same key) or `none`. `reconcile_offers` are further ways that a
    Channel may name, because servers of one dialect differ in what they honour. `states` maps the provider's words to
    ours; a word that is not in it is no failure of the job. `ignored_fields` is the closed list of reply fields that
    are ignored on purpose, as dotted paths under the name of the operation (`task.created_at`).

    `materials` is the form in which the dialect takes inputs that are files: `url` (fetched by the provider: a link of
    our edge where one is configured, else a `data:` URL for the families of `data_urls`), `base64` or `upload`.
    `limits` are documented limits for a person (`reference images` -> `1-9`). `cost_fields` tell what is charged by and
    where a reply says so (`usage.completion_tokens` -> `tokens`). `joins_clips` says that the dialect has words for a
    film of `clips`; any other refuses one, lest its parts be silently left out.
    """

    name: str
    kinds: tuple[str, ...]
    synchronous_kinds: tuple[str, ...]
    auth: Auth
    reconcile_by: str
    cancels: bool
    reconcile_offers: tuple[str, ...] = ()
    streamed_kinds: tuple[str, ...] = ()
    materials: str = "url"
    data_urls: tuple[str, ...] = ("image", "video", "audio")
    joins_clips: bool = False
    limits: Mapping[str, str] = field(default_factory=dict)
    cost_fields: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, JobState] = field(default_factory=dict)
    read_fields: frozenset[str] = frozenset()
    ignored_fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quality:
    """How far an adapter is proved: the rungs of the ladder, each a count or a fact that `tools/ladder.py` took.

    `unknown_fields` counts recorded exchanges with a field that is neither read nor ignored on purpose (0 is the rung);
    `classified` of `labelled` are the certain failures of its providers that are classified as labelled.
    """

    exchanges: int = 0
    unknown_fields: int = 0
    fault_rows: int = 0
    reconciles: bool = False
    prices_usage: bool = False
    classified: int = 0
    labelled: int = 0


LOOKUP, KEY = "lookup", "idempotency_key"
"""Asking once for our token; and, of a server that honours it as a key, the same request with the same key (ATT-6)."""


class Submit(Protocol):
    """Sending a job. `build` raises Fault for an input that the dialect cannot say; `parse` for a refusal."""

    def build(self, job: Job, endpoint: Endpoint) -> HttpRequest: ...
    def parse(self, response: HttpResponse, job: Job) -> Submitted: ...


class Call(Protocol):
    """A call whose answer is its output in JSON. `build` raises Fault for an input that the dialect cannot say (with
    field and remedy); `parse` for a refusal, and for an answer without an output."""

    def build(self, job: Job, endpoint: Endpoint) -> HttpRequest: ...
    def parse(self, response: HttpResponse, job: Job) -> Answered: ...


class Stream(Protocol):
    """The same, its output piece by piece. `reader` reads the body of one answer with status 200 and those headers."""

    def build(self, job: Job, endpoint: Endpoint) -> HttpRequest: ...
    def reader(self, job: Job, headers: Mapping[str, str]) -> StreamReader: ...


class Poll(Protocol):
    """Asking where a job stands. A failed job is a value; a Fault says that the question failed."""

    def build(self, job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest: ...
    def parse(self, response: HttpResponse, job: Job) -> Polled: ...


class Cancel(Protocol):
    """Asking to stop a job. `build` gives None for a job that the provider cannot stop, where others can be."""

    def build(self, job: Job, endpoint: Endpoint, provider_task_id: str) -> HttpRequest | None: ...
    def parse(self, response: HttpResponse, job: Job) -> Cancelled: ...


class Page(int):
    """The number of a page, from 1. `after` is the mark that the page before ended with, where providers count so."""

    after: str

    def __new__(cls, number: int, after: str = "") -> "Page":
        page = super().__new__(cls, number)
        page.after = after
        return page


class Reconcile(Protocol):
    """Asking a provider's records, page by page. A lookup by our token has one page, of one record or none.

    `build` gives None for a job of which the provider keeps no records that could be asked.
    """

    def build(self, job: Job, endpoint: Endpoint, page: Page) -> HttpRequest | None: ...
    def parse(self, response: HttpResponse, job: Job) -> Listed: ...


@dataclass(frozen=True, slots=True)
class Adapter:
    """One dialect. A part that is None is something that the provider does not offer.

    `submit` makes the kinds that give files, `call` those whose output is JSON, also where they are asked for as jobs.
    """

    manifest: Manifest
    table: FaultTable
    submit: Submit | None = None
    call: Call | None = None
    stream: Stream | None = None
    poll: Poll | None = None
    cancel: Cancel | None = None
    reconcile: Reconcile | None = None

    def submits(self, kind: str) -> Submit:
        """The part that makes files of that kind. Fault `source_not_configured` when there is none."""
        if self.submit is None or kind not in self.manifest.kinds or kind in ANSWERED_KINDS:
            raise Fault.of("source_not_configured", f"adapter '{self.manifest.name}' takes no jobs of kind '{kind}'")
        return self.submit

    def calls(self, kind: str) -> Call:
        """The part that answers calls of that kind. Fault `source_not_configured` when there is none."""
        if self.call is None or kind not in self.manifest.kinds or kind not in ANSWERED_KINDS:
            raise Fault.of("source_not_configured", f"adapter '{self.manifest.name}' answers no calls of kind '{kind}'")
        return self.call

    def streams(self, kind: str) -> Stream:
        """The part that streams that kind. Fault `source_not_configured` when there is none."""
        if self.stream is None or kind not in self.manifest.streamed_kinds:
            raise Fault.of("source_not_configured", f"adapter '{self.manifest.name}' does not stream '{kind}'")
        return self.stream

    def reconciles_by(self, endpoint: Endpoint) -> str:
        """The way that holds at that endpoint."""
        return endpoint.reconcile_by or self.manifest.reconcile_by

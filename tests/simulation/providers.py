"""The outside: accounts that speak Ark's dialect, misbehave by seed, and keep the ledger that judges us (VER-7).

Laws of this file:
- what an account does happens at its own time, whatever became of who asked;
- a submission whose connection breaks is in the records within `settle_s` of that, or never: the promise on which
  absence from the records counts as a proof;
- a job is charged when it succeeds, and its content is its own: one digest, one job.
"""

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Content
from services.provider_adapter.domain.media import digest
from services.provider_adapter.domain.outcomes import Stored
from services.provider_adapter.ports import Download, Target
from tests.simulation.offers import Offers
from tests.simulation.wire_to_outside import Connection, Outcome, converse

TASKS = "/contents/generations/tasks"
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Mood:
    """How an account behaves for a while: weights of what happens to a submission, a question, a job."""

    name: str
    submit: Mapping[str, float]
    ask: Mapping[str, float] = field(default_factory=lambda: {"ok": 1.0})
    job: Mapping[str, float] = field(default_factory=lambda: {"succeeds": 0.86, "fails": 0.08, "refused": 0.06})
    slow: float = 0.05


CALM = Mood("calm", {"taken": 1.0}, job={"succeeds": 1.0}, slow=0.0)
MOODS = (
    Mood("calm", {"taken": 0.97, "content": 0.03}),
    Mood(
        "flaky",
        {"taken": 0.3, "error": 0.1, "reset_taken": 0.15, "reset_lost": 0.1, "cut_taken": 0.1, "page_taken": 0.1,
         "page_lost": 0.1, "refused": 0.05},
        {"ok": 0.6, "error": 0.15, "reset": 0.15, "hang": 0.1},
    ),
    Mood("hanging", {"hang_taken": 0.25, "hang_lost": 0.25, "slow_taken": 0.3, "taken": 0.2}, {"ok": 0.6, "hang": 0.4}),
    Mood("crowded", {"busy": 0.8, "taken": 0.2}, {"ok": 0.7, "busy": 0.3}),
    Mood("broken", {"error": 0.9, "taken": 0.1}, {"ok": 0.5, "error": 0.5}, {"fails": 1.0}),
    Mood("away", {"refused": 1.0}, {"refused": 1.0}),
    Mood("overdue", {"balance": 1.0}),
)  # fmt: skip


@dataclass(slots=True)
class Job:
    """One entry of the ledger."""

    id: str
    account: str
    token: str
    model: str
    made_at: float
    listed_at: float
    starts_at: float
    ends_at: float
    fate: str
    cancelled_at: float | None = None
    deleted: bool = False

    def state(self, now: float) -> str:
        """Ark's word for where it stands."""
        if self.cancelled_at is not None:
            return "cancelled"
        if now < self.starts_at:
            return "queued"
        if now < self.ends_at:
            return "running"
        return "succeeded" if self.fate == "succeeds" else "failed"

    def charged(self, now: float) -> bool:
        """Whether it costs money."""
        return self.state(now) == "succeeded"

    def ended_at(self, now: float) -> float | None:
        """When it stopped running, None while it has not."""
        if self.cancelled_at is not None:
            return self.cancelled_at
        return self.ends_at if self.ends_at <= now else None

    @property
    def content(self) -> bytes:
        """Its film."""
        return b"\x00\x00\x00\x18ftypmp42" + self.id.encode() * 4


@dataclass(slots=True)
class Account:
    """One account at one provider."""

    name: str
    key: str
    mood: Mood = CALM
    jobs: dict[str, Job] = field(default_factory=dict)


class Outside:
    """All accounts. Implements `Transport`, `MediaStore` and `Secrets` of provider_adapter for every process."""

    def __init__(self, rng: random.Random, loop: Any, offers: Offers, trace: Callable[[str], None]) -> None:
        self._rng = rng
        self._loop = loop
        self._trace = trace
        self._stretch = offers.stretch
        self._submit_s = offers.submit_s
        self.settle_s = 8.0 * offers.stretch
        self.accounts = {name: Account(name, f"key-{name}") for name in offers.accounts}
        self.secrets = {f"env:{name.upper()}_KEY": f"key-{name}" for name in offers.accounts}
        self.films: dict[str, bytes] = {}
        self.counts: Counter[str] = Counter()

    @property
    def jobs(self) -> list[Job]:
        """The whole ledger."""
        return [job for account in self.accounts.values() for job in account.jobs.values()]

    # --- Transport ---

    async def exchange(self, request: HttpRequest, target: Target) -> HttpResponse:
        """See `Transport.exchange`."""
        account = self.accounts[target.base_url.split("//")[1].split(".")[0]]
        authorised = target.auth_value.endswith(account.key)
        if request.method == "POST":
            fate = self._drawn(account.mood.submit, "submit ")
            outcome = self._submission(account, request, fate) if authorised else self._unauthorised()
        else:
            fate = self._drawn(account.mood.ask, "ask ")
            outcome = self._question(account, request, fate) if authorised else self._unauthorised()
        return await converse(self._loop, self._rng, outcome, target.total_s, self.settle_s)

    @asynccontextmanager
    async def fetch(self, url: str, door: Target | None = None) -> AsyncIterator[Download]:
        """See `Transport.fetch`."""
        film = next(job.content for job in self.jobs if job.id == url.rpartition("/")[2])
        fate = self._drawn({"ok": 0.94, "error": 0.03, "cut": 0.03}, "fetch ")
        await self._pause(0.05, 2.0 * self._stretch)
        if fate == "error":
            yield Download(503, "text/html", None, _pieces(b"<html>"))
        else:
            yield Download(200, "video/mp4", len(film), _pieces(film[:-5] if fate == "cut" else film))

    # --- MediaStore and Secrets ---

    async def keep(self, chunks: AsyncIterator[bytes], media_type: str, max_bytes: int) -> Stored:
        """See `MediaStore.keep`."""
        film = b"".join([chunk async for chunk in chunks])
        await self._pause(0.0, 0.01)
        self.films[digest(film)] = film
        return Stored(digest(film), media_type, len(film))

    async def about(self, sha256: str) -> Stored:
        """See `MediaStore.about`."""
        if sha256 not in self.films:
            raise Fault.of("material_unreachable")
        return Stored(sha256, "video/mp4", len(self.films[sha256]))

    async def content(self, sha256: str, max_bytes: int) -> Content:
        """See `MediaStore.content`."""
        if sha256 not in self.films:
            raise Fault.of("material_unreachable")
        return Content(self.films[sha256], "video/mp4")

    def value(self, ref: str) -> str:
        """See `Secrets.value`."""
        return self.secrets[ref]

    def problem(self, ref: str) -> str:
        """See `Secrets.problem`."""
        return "" if ref in self.secrets else "not set"

    # --- what an account does ---

    def _submission(self, account: Account, request: HttpRequest, fate: str) -> Outcome:
        body = json.loads(request.body or b"{}")
        kind, _, taken = fate.partition("_")
        takes = taken == "taken" or fate == "taken"

        def act() -> Any:
            job = self._take(account, body) if takes else None
            if kind == "taken" or (kind == "slow" and job is not None):
                return _answer(200, {"id": job.id if job else ""})
            return _REFUSALS[kind]() if kind in _REFUSALS else None

        if kind in ("hang", "slow"):
            low, high = (0.4, 0.87) if kind == "slow" else (0.0, 0.8)
            held = self._rng.uniform(low, high) * self._submit_s
            return Outcome(act, reaches_after=held, answers=kind == "slow")
        if kind == "refused":
            return Outcome(lambda: ExchangeBroken(Broken.CONNECT_REFUSED), reaches_after=0.01, answers=True)
        return Outcome(act, reaches_after=self._rng.uniform(0.02, 0.6), answers=True)

    def _take(self, account: Account, body: Mapping[str, Any]) -> Job:
        now, rng, stretch = self._loop.time(), self._rng, self._stretch
        slow = rng.random() < account.mood.slow
        length = (rng.uniform(200.0, 700.0) if slow else rng.uniform(3.0, 40.0)) * stretch
        starts = now + rng.choice((0.0, rng.uniform(0.5, 8.0) * stretch))
        number = sum(len(other.jobs) for other in self.accounts.values()) + 1
        job = Job(
            f"cgt-{number:05d}", account.name, body["safety_identifier"], body["model"], now,
            now + rng.uniform(0.0, 1.5) * stretch, starts, starts + length, self._drawn(account.mood.job, "job "),
        )  # fmt: skip
        account.jobs[job.id] = job
        self._trace(f"{account.name} takes {job.id} of {job.token[-6:]}: {job.fate}")
        return job

    def _question(self, account: Account, request: HttpRequest, fate: str) -> Outcome:
        def act() -> Any:
            if fate == "ok":
                return self._told(account, request)
            return _REFUSALS[fate]()

        if fate == "hang":
            return Outcome(lambda: None, reaches_after=0.1, answers=False)
        return Outcome(act, reaches_after=self._rng.uniform(0.01, 0.3), answers=True)

    def _told(self, account: Account, request: HttpRequest) -> HttpResponse:
        now = self._loop.time()
        name = request.path.removeprefix(TASKS).lstrip("/")
        if not name:
            return _answer(200, self._page(account, dict(request.query), now))
        job = account.jobs.get(name)
        if job is None or job.deleted:
            return _error(404, "ResourceNotFound", "the task does not exist")
        if request.method == "DELETE":
            return self._stopped(job, now)
        return _answer(200, _document(job, now))

    def _stopped(self, job: Job, now: float) -> HttpResponse:
        state = job.state(now)
        if state == "running":
            return _error(409, "OperationDenied.InvalidState", "a running task cannot be cancelled")
        if state == "queued":
            job.cancelled_at = now
        else:
            job.deleted = True
        return _answer(200, {})

    def _page(self, account: Account, query: Mapping[str, str], now: float) -> dict[str, Any]:
        listed = [
            job
            for job in sorted(account.jobs.values(), key=lambda job: -job.made_at)
            if job.listed_at <= now and not job.deleted and job.model == query["filter.model"]
        ]
        size, number = int(query["page_size"]), int(query["page_num"])
        page = listed[size * (number - 1) : size * number]
        return {"items": [_document(job, now) for job in page], "total": len(listed)}

    def _unauthorised(self) -> Outcome:
        self.counts["key refused"] += 1
        refusal = _error(401, "AuthenticationError", "the API key is not valid")
        return Outcome(lambda: refusal, reaches_after=0.05, answers=True)

    def _drawn(self, weights: Mapping[str, float], counted: str) -> str:
        drawn = self._rng.choices(list(weights), list(weights.values()))[0]
        self.counts[counted + drawn] += 1
        return drawn

    async def _pause(self, low: float, high: float) -> None:
        await Connection.pause(self._loop, self._rng.uniform(low, high))


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data[:20]
    yield data[20:]


def _answer(status: int, body: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(status, JSON, json.dumps(body).encode())


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    body = {"error": {"code": code, "message": message, "type": ""}}
    return HttpResponse(status, {**JSON, **(headers or {})}, json.dumps(body).encode())


def _document(job: Job, now: float) -> dict[str, Any]:
    state = job.state(now)
    told: dict[str, Any] = {
        "id": job.id, "model": job.model, "status": state, "created_at": EPOCH_S + job.made_at,
        "safety_identifier": job.token,
    }  # fmt: skip
    if state == "succeeded":
        told["content"] = {"video_url": f"https://files.sim/{job.id}"}
        told["usage"] = {"completion_tokens": 1000, "total_tokens": 1000}
    if state == "failed":
        code = "OutputVideoSensitiveContentDetected" if job.fate == "refused" else "InternalServiceError"
        told["error"] = {"code": code, "message": "it did not work out"}
    return told


EPOCH_S = 1_772_000_000.0
"""Second 0 of the simulation, since the epoch."""

_REFUSALS: Mapping[str, Callable[[], Any]] = {
    "error": lambda: _error(500, "InternalServiceError", "internal error"),
    "busy": lambda: _error(429, "RateLimitExceeded.EndpointRPMExceeded", "too many", {"retry-after": "3"}),
    "content": lambda: _error(400, "InputTextSensitiveContentDetected", "the prompt was refused"),
    "balance": lambda: _error(403, "AccountOverdueError", "the account is overdue"),
    "reset": lambda: ExchangeBroken(Broken.RESET),
    "refused": lambda: ExchangeBroken(Broken.CONNECT_REFUSED),
    "cut": lambda: ExchangeBroken(Broken.INCOMPLETE_BODY, 200),
    "page": lambda: HttpResponse(502, {"content-type": "text/html"}, b"<html>Bad gateway</html>"),
}

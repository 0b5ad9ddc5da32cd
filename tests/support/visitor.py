"""A caller of the HTTP contract who sees status, headers and bytes as well, and waits for what processes do."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp

from cli.api import Api

T = TypeVar("T")
POLL_S = 0.1
RESTING = frozenset({"succeeded", "failed", "timed_out", "cancelled"})
FIXED = {"duration_s": 4, "resolution": "480p", "ratio": "16:9"}


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, whole. `headers` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Visitor(Api):
    """Holds one key. Use inside `async with`."""

    async def ask(self, method: str, path: str, **given: Any) -> Answer:
        """Any answer, problems too. `given` is aiohttp's: json, data, headers, params."""
        assert self._session is not None, "use inside `async with`"
        async with self._session.request(method, self.url + path, **given) as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Answer(answer.status, headers, await answer.read())

    async def post_run(self, model: str, prompt: str, *, options: Any = None, **more: Any) -> str:
        """A new Run for a clip of four seconds; its id."""
        body = {"model": model, "input": {"prompt": prompt, **FIXED, **more}, "options": options or {}}
        return str((await self.call("POST", "/v1/runs", body=body))["id"])

    async def run(self, run_id: str) -> dict[str, Any]:
        """The Run now."""
        return await self.get(f"/v1/runs/{run_id}")

    async def finished(self, run_id: str, within_s: float = 30.0) -> dict[str, Any]:
        """The Run at rest."""
        return await until(lambda: self.run(run_id), lambda run: run["status"] in RESTING, within_s)

    async def all_finished(self, run_ids: list[str], within_s: float = 60.0) -> list[dict[str, Any]]:
        """All of them at rest; asked about one after the other, or the asking is most of what the product does."""
        end = time.monotonic() + within_s
        return [await self.finished(run_id, end - time.monotonic()) for run_id in run_ids]

    async def waiting_reason(self, run_id: str) -> str | None:
        """Why the Run's node does not run now."""
        reason: str | None = (await self.run(run_id))["nodes"][0]["waiting_reason"]
        return reason

    async def task_of(self, run_id: str) -> dict[str, Any]:
        """The Task behind a Run."""
        return await self.get(f"/v1/tasks/{(await self.run(run_id))['nodes'][0]['task_id']}")

    async def selections_of(self, run_id: str) -> list[dict[str, Any]]:
        """The selection rounds behind a Run."""
        task_id = (await self.run(run_id))["nodes"][0]["task_id"]
        rounds: list[dict[str, Any]] = (await self.get(f"/v1/tasks/{task_id}/selections"))["selections"]
        return rounds

    async def events_of(self, run_id: str) -> list[dict[str, Any]]:
        """The events of a Run so far."""
        events: list[dict[str, Any]] = (await self.get(f"/v1/runs/{run_id}/events"))["events"]
        return events

    async def frames(self, path: str, **headers: str) -> list[dict[str, str]]:
        """The frames of a stream of server-sent events until the server closes it, comments left out."""
        assert self._session is not None, "use inside `async with`"
        async with self._session.get(self.url + path, headers=headers, timeout=aiohttp.ClientTimeout(60)) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["content-type"].startswith("text/event-stream")
            text = (await answer.read()).decode()
        blocks = (dict(_field(line) for line in block.splitlines() if line[:1] != ":") for block in text.split("\n\n"))
        return [block for block in blocks if "id" in block]

    async def health_of(self, kind: str, name: str) -> dict[str, Any]:
        """One line of the health view; `kind` is `channels` or `supplies`."""
        return _named((await self.get("/v1/operator/health"))[kind], name)

    async def capacity_of(self, kind: str, name: str) -> dict[str, Any]:
        """One line of the capacity view; `kind` is `channels` or `supplies`."""
        return _named((await self.get("/v1/operator/capacity"))[kind], name)

    async def slots(self) -> dict[str, int]:
        """Slots in use by Supply."""
        return {item["id"]: item["in_use"] for item in (await self.get("/v1/operator/capacity"))["supplies"]}


class Lab(Visitor):
    """The local providers' control."""

    async def account(self, name: str, **changes: Any) -> None:
        """Change an account."""
        await self.call("POST", f"/lab/accounts/{name}", body=changes)

    async def script(self, account: str, *steps: dict[str, Any], repeat: Any = 1, **match: Any) -> None:
        """Let an account answer as told."""
        rule = {"match": {"account": account, **match}, "then": list(steps), "repeat": repeat}
        await self.call("POST", "/lab/script", body=rule)

    async def submissions(self, account: str = "") -> list[dict[str, Any]]:
        """What was accepted, by one account or by all."""
        jobs: list[dict[str, Any]] = (await self.ledger(account))["submissions"]
        return jobs

    async def ledger(self, account: str = "") -> dict[str, Any]:
        """The whole book."""
        return await self.get("/lab/ledger", **({"account": account} if account else {}))


async def until(look: Callable[[], Awaitable[T]], done: Callable[[T], object], within_s: float = 20.0) -> T:
    """Look until `done(seen)`; what was seen then. AssertionError with what was seen last when time is over."""
    end = time.monotonic() + within_s
    while not done(seen := await look()):
        assert time.monotonic() < end, f"not within {within_s:g} s; seen last: {seen}"
        await asyncio.sleep(POLL_S)
    return seen


def gap_free(events: list[dict[str, Any]]) -> None:
    """EVENT-1 in one line: sequences are 1..n, and exactly the last event ends the Run."""
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    ends = {"run_completed", "run_failed", "run_timed_out", "run_cancelled", "run_dead_lettered"}
    assert [event["kind"] in ends for event in events] == [False] * (len(events) - 1) + [True], events


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["id"] == name)

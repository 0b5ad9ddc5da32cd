"""A server in words: what it answers by path, and what was asked of it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from cli.api import Api, Problem
from cli.context import Session

URL = "http://server.test"


def problem(code: str, status: int = 404, **body: Any) -> Problem:
    """What the server refuses with."""
    return Problem(status, {"code": code, "request_id": "R", "detail": code, **body})


class Turns(dict[str, Any]):
    """Answers of one path in turn, the last one for ever."""

    def __init__(self, path: str, answers: list[Any]) -> None:
        super().__init__({path: answers})

    def get(self, path: str, default: Any = None) -> Any:
        """The next one."""
        answers = super().get(path)
        if answers is None:
            return default
        return answers.pop(0) if len(answers) > 1 else answers[0]


@dataclass
class FakeServer(Api):
    """`answers`: path -> the JSON object, or what is raised. Unknown paths are `not_found`."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    """The events of a stream."""
    broken: BaseException | None = None
    """What the stream ends with, instead of its end."""
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(URL, "")

    async def call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """The answer of that path."""
        self.asked.append((method, path, given.get("body")))
        found = self.answers.get(path, problem("not_found"))
        if isinstance(found, BaseException):
            raise found
        return dict(found)

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Events, then the end."""
        for event in self.told:
            yield event
        if self.broken is not None:
            raise self.broken

    async def chunks(self, body: Any) -> AsyncIterator[dict[str, Any]]:
        """What was told, then the end."""
        self.asked.append(("POST", "/v1/chat/completions", body))
        for chunk in self.told:
            yield chunk
        if self.broken is not None:
            raise self.broken

    async def download(self, path: str, target: Path) -> int:
        """Three bytes of anything."""
        return target.write_bytes(b"abc")


class FakeSession(Session):
    """A session with that server."""

    server: FakeServer

    def api(self) -> Api:
        """The fake."""
        return self.server


def invoke(command: Any, server: FakeServer, *arguments: str) -> Result:
    """Run a command of the command line against the fake server."""
    session = FakeSession(URL, "", Path("nowhere"))
    object.__setattr__(session, "server", server)
    return CliRunner().invoke(command, list(arguments), obj=session, catch_exceptions=False)


def a_run(status: str = "succeeded", **more: Any) -> dict[str, Any]:
    """A run as the API tells it."""
    node = {"id": "main", "task_id": "T1", "waiting_reason": None}
    usage = {"cost": None, "attempts": 1, "supply": "a/b"}
    base = {"id": "R1", "status": status, "model": "m", "error": None, "result": None, "usage": usage, "nodes": [node]}
    return {**base, "created_at": "2026-01-31T09:30:00.123456Z", **more}


def a_call(**more: Any) -> dict[str, Any]:
    """A call as the API tells it."""
    cost, usage = {"currency": "USD", "amount": "0.002"}, {"input_tokens": 9, "output_tokens": 3}
    attempt = {
        "number": 1, "supply": "a/b", "state": "succeeded", "latency_ms": 400.0, "time_to_first_token_ms": 90.5,
        "usage": usage, "quote": cost, "cost": None, "possible_charge": True, "error": None,
    }  # fmt: skip
    times = {"wall_ms": 500.0, "productive_ms": 400.0, "stall_ms": 98.5, "overhead_ms": 1.5}
    selection = {
        "round": 1, "tier": "exact", "chosen": "a/b", "steps": ["fits", "is well", "is cheap", "no switch"],
        "candidates": [], "baseline": None,
    }  # fmt: skip
    base = {"id": "C1", "model": "m", "status": "succeeded", "error": None, "cached": False, "supply": "a/b"}
    return {**base, "cost": cost, "times": times, "attempts": [attempt], "selections": [selection], **more}


def a_task(**more: Any) -> dict[str, Any]:
    """A task as the API tells it."""
    return {"id": "T1", "model": "m", "status": "running", "waiting_reason": None, "attempts": [], **more}

"""The outermost layer, around applications that misbehave."""

import asyncio
import json
from typing import Any

import pytest

from libs.faults.fault import Fault
from libs.telemetry.metrics import Metrics
from services.edge.routes.shell import Shell
from tests.support.worlds import steered_world

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


async def call(inner: Any, method: str = "GET", **headers: str) -> tuple[list[Any], Metrics]:
    """What leaves the shell around `inner`."""
    sent: list[Any] = []
    metrics = Metrics()
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": raw}

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    await Shell(inner, steered_world()[0], metrics)(scope, receive, send)
    return sent, metrics


@pytest.mark.parametrize(
    "error, status, code",
    [
        (Fault.of("not_found", "nothing"), 404, "not_found"),
        (RuntimeError("the secret inside"), 500, "internal"),
        (KeyError("x"), 500, "internal"),
        (RecursionError("deep"), 500, "internal"),
        (TimeoutError("late"), 500, "internal"),
    ],
)
async def test_whatever_is_raised_is_a_problem(error: Exception, status: int, code: str) -> None:
    """EDG-3: a fault keeps its name, everything else is `internal` with a reference and no text."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise error

    (start, body), metrics = await call(inner)
    told = json.loads(body["body"])
    assert (start["status"], told["code"]) == (status, code)
    assert "secret" not in str(told)
    headers = dict(start["headers"])
    assert headers[b"x-request-id"].decode() == told["request_id"]
    assert headers[b"content-length"] == str(len(body["body"])).encode()
    assert f'pointsman_http_problems_total{{code="{code}"}} 1.0'.encode() in metrics.page()


async def test_an_answer_that_has_begun_is_cut_off() -> None:
    """EDG-3: after the first byte no problem is mixed into the answer; it ends unfinished, and is counted."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        raise RuntimeError("late")

    sent, metrics = await call(inner)
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert b'code="internal"} 1.0' in metrics.page()


async def test_cancellation_passes() -> None:
    """EDG-3: a cancelled request is cancelled, not answered."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call(inner)


async def test_other_protocols_are_not_served() -> None:
    """EDG-3: only HTTP comes in here."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("not reached")

    await Shell(inner, steered_world()[0], Metrics())({"type": "websocket"}, None, None)


async def test_a_head_has_no_body() -> None:
    """EDG-3: HEAD sends the head alone, of problems too."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        raise Fault.of("not_found", "nothing")

    (start, body), _ = await call(inner, "HEAD")
    assert (start["status"], body["body"]) == (404, b"")

"""A server of HTTP that answers as it is told, for clients to prove themselves."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

DROP = "drop"
"""Read the request and cut the connection."""


@dataclass
class Answer:
    """One answer. `cut`: the connection breaks after the body, before its end was told."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def refused(code: str, status: int, retryable: bool = True, **headers: str) -> Answer:
    """A problem."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"code": code, "status": status, "detail": code, "retryable": retryable}, told)


@dataclass
class Script:
    """`steps` are used up one a request; the last one stays. `asked` is (method, path, headers, body)."""

    steps: list[Any]
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The next step."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append((request.method, request.path_qs, headers, await request.read()))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if step == DROP:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        raw = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        if not step.cut:
            return web.Response(status=step.status, body=raw if step.body is not None else b"", headers=step.headers)
        response = web.StreamResponse(status=step.status, headers=step.headers)
        await response.prepare(request)
        await response.write(raw)
        assert request.transport is not None
        request.transport.close()
        return response


@asynccontextmanager
async def serving(*steps: Any) -> AsyncIterator[Script]:
    """The server on a free port."""
    script = Script(list(steps))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    script.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield script
    finally:
        await runner.cleanup()

"""Cutting a connection from inside an application: uvicorn's protocol hands its transport to the scope."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

KEY = "studio.transport"


class CuttableProtocol(HttpToolsProtocol):
    """The HTTP protocol of the studio's server: each request's scope carries the transport it came on."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][KEY] = self.transport


class Cut(Response):
    """No answer: the connection is closed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await cut(scope, receive)


class Truncated(Response):
    """Half an answer: status, headers with the full length, the first half of the body, and the end of the line."""

    def __init__(self, whole: Response) -> None:
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole, body = self._whole, _body_of(self._whole)
        headers = [(name, value) for name, value in whole.raw_headers if name != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": whole.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
        await cut(scope, receive)


class Garbled(Response):
    """An answer whose JSON breaks off, under a length that fits: no transport can notice it."""

    def __init__(self, whole: Response) -> None:
        body = _body_of(whole)
        super().__init__(body[: len(body) // 2], whole.status_code, media_type=whole.media_type)


def _body_of(whole: Response) -> bytes:
    return Path(whole.path).read_bytes() if isinstance(whole, FileResponse) else bytes(whole.body)


async def silence(request: Request, seconds: float) -> bool:
    """Says nothing for so long, or until the caller hangs up; True when they did."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await left(request.receive)
            return True
    return False


async def left(receive: Receive) -> None:
    """Returns when the caller has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def cut(scope: Scope, receive: Receive) -> None:
    """Ends the line."""
    scope["state"][KEY].close()
    await left(receive)

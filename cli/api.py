"""The server over HTTP, as the command line needs it: JSON in, JSON out, problems as one exception.

Calls are made once. A create that must not happen twice carries an Idempotency-Key, so that the person may repeat it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

T = TypeVar("T")
TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5)
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)


class Problem(Exception):
    """The server answered with a problem (RFC 9457). `body` is what it said."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("detail") or body.get("title") or f"the server answered {status}"))
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))


class Unreachable(Exception):
    """Nobody answers at that address."""


class Api:
    """One server and one key. Use inside `async with`."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Api":
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=TIMEOUT)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def _asked(self, method: str, path: str, **given: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None, "use inside `async with`"
        try:
            async with self._session.request(method, self.url + path, **given) as response:
                if response.status >= 400:
                    raise Problem(response.status, _object(await response.read()))
                yield response
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise Unreachable(f"{self.url}: {error or type(error).__name__}") from error

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        text: str | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The answer's JSON object ({} for an empty one). Raises Problem or Unreachable.

        `body` is sent as JSON, `text` as YAML.
        """
        sent: dict[str, Any] = {"params": {name: str(value) for name, value in (query or {}).items()}}
        sent["headers"] = dict(headers or {})
        if text is not None:
            sent["data"] = text.encode()
            sent["headers"]["Content-Type"] = "application/yaml"
        elif body is not None:
            sent["json"] = body
        async with self._asked(method, path, **sent) as response:
            return _object(await response.read())

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        """`call("GET", …)` with the query as keywords."""
        return await self.call("GET", path, query=query)

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """A Run's events from the stream, until the server closes it."""
        path = f"/v1/runs/{run_id}/stream?after={after}"
        async with self._asked("GET", path, timeout=STREAM_TIMEOUT) as response:
            async for line in response.content:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    async def download(self, path: str, target: Path) -> int:
        """Write the bytes at `path` to a file, whole or not at all; their number."""
        staged = target.with_name(f".{target.name}.part")
        size = 0
        async with self._asked("GET", path) as response:
            with staged.open("wb") as file:
                async for chunk in response.content.iter_chunked(1 << 16):
                    size += file.write(chunk)
        staged.replace(target)
        return size


def run_with(api: Api, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` while the session of `api` is open."""

    async def inside() -> T:
        async with api:
            return await work

    return asyncio.run(inside())


def _object(raw: bytes) -> dict[str, Any]:
    if not raw:
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        return {"detail": "the answer is no JSON; is this a Pointsman server?"}
    return value if isinstance(value, dict) else {"value": value}

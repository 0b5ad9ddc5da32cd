"""The server over HTTP, as the command line needs it: JSON in, JSON out, problems as one exception.

Calls are made once. A create that must not happen twice carries an Idempotency-Key, so that the person may repeat it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

T = TypeVar("T")
FOREIGN = {"detail": "the answer is none of ours; is this a Pointsman server?"}
TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5)
STREAM_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=60)


class Problem(Exception):
    """The server answered with a problem (RFC 9457). `body` is what it said."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("detail") or body.get("title") or f"the server answered {status}"))
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))

    def told(self) -> tuple[str, list[str]]:
        """(one sentence, a line for each place that is wrong), everything said once.

        The detail of a problem repeats its places for those who read nothing else. One place stays in the sentence;
        of several the sentence is the title.
        """
        detail = str(self)
        places = [(str(item.get("pointer", "")), str(item.get("reason", ""))) for item in self.body.get("errors", ())]
        repeated = bool(places) and places[0][1] in detail
        if repeated and len(places) == 1:
            return detail, []
        lines = [f"{pointer}: {reason}" if pointer else reason for pointer, reason in places]
        return str(self.body.get("title") or detail) if repeated else detail, lines


class Unreachable(Exception):
    """Nobody who speaks our protocol answers at that address; the text is a sentence for a person."""


def server_url(text: str) -> str:
    """A server's address, with `http://` where no scheme is said. ValueError says what is wrong with it."""
    spelled = text.strip() if "://" in text else f"http://{text.strip()}"
    try:
        parts = urlsplit(spelled)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or any(character.isspace() for character in spelled):
        raise ValueError(f"{text!r} is no address of a server; say http://HOST:PORT")
    return spelled.rstrip("/")


class Api:
    """One server and one key. Use inside `async with`."""

    def __init__(self, url: str, key: str) -> None:
        self.url = server_url(url)
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
                    raise Problem(response.status, _object(await response.read()) or FOREIGN)
                yield response
        except TimeoutError as error:
            raise Unreachable(f"the server at {self.url} did not answer in time") from error
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"no server answers at {self.url}") from error
        except aiohttp.ClientConnectionError as error:
            raise Unreachable(f"the connection to {self.url} was closed; is this a Pointsman server?") from error
        except aiohttp.ClientError as error:
            raise Unreachable(f"what answers at {self.url} is no HTTP server") from error

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
            raw = await response.read()
            answer = _object(raw)
            if answer is None:
                raise Problem(response.status, FOREIGN)
            return answer

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

    async def chunks(self, body: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The chunks of a streamed completion. Problem for a stream that broke off, told or not."""
        whole = False
        sent = {**body, "stream": True, "stream_options": {"include_usage": True}}
        async with self._asked("POST", "/v1/chat/completions", json=sent, timeout=STREAM_TIMEOUT) as response:
            async for line in response.content:
                if line.startswith(b"data: [DONE]"):
                    whole = True
                elif line.startswith(b"data:"):
                    chunk = json.loads(line[5:])
                    if chunk.get("error"):
                        raise Problem(int(chunk.get("status", response.status)), chunk)
                    yield chunk
        if not whole:
            raise Problem(502, {"code": "stream_interrupted", "detail": "the stream ended without its last event"})

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


def _object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object in an answer, {} for an empty one, None for what is none of ours."""
    if not raw:
        return {}
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

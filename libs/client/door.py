"""The server over HTTP, one sending at a time: bytes out, bytes or a fault in. Nothing is repeated here."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from libs.client.faults import Problem, Unreachable, problem_of

T = TypeVar("T")
CONNECT_S = 5.0
READ_S = 60.0
FOREIGN = "the answer is none of ours; is this a Pointsman server?"


class Door:
    """One server and one key. Use inside `async with`."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def asked(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        media_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = READ_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A success whose body can be read within. Problem for any other answer, Unreachable for none or half of one.

        A redirect is no success: nobody is to be sent elsewhere with a key in hand.
        """
        assert self._session is not None, "use inside `async with`"
        sent = {**(headers or {}), **({"Content-Type": media_type} if body is not None else {})}
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=read_s)
        try:
            async with self._session.request(
                method,
                self._url + path,
                data=body,
                params=query,
                headers=sent,
                timeout=limits,
                allow_redirects=False,
            ) as response:
                if response.status >= 300:
                    raw = await response.read()
                    raise problem_of(response.status, _json(raw), response.headers.get("Retry-After"))
                yield response
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(f"no server answers at {self._url}", sent=False) from error
        except TimeoutError as error:
            raise Unreachable(f"{self._url} did not answer in time") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            raise Unreachable(f"the connection to {self._url} broke") from error

    async def shape(self, kind: type[T], method: str, path: str, **given: Any) -> T:
        """The answer as that shape."""
        async with self.asked(method, path, **given) as response:
            raw = await response.read()
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError as error:
            raise Problem(response.status, "", FOREIGN) from error


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return None

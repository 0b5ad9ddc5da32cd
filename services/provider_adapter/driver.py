"""The only code with a socket to the outside: carries what adapters have built, once, and says how far it came.

Laws of this file:
- one call, one request on the wire. aiohttp re-sends GET, PUT and DELETE by itself when a connection breaks; the
  middleware `_unrepeated` takes the error away from that loop, so that nothing is ever re-sent behind our back. It
  never re-sends a POST, which goes without the middleware;
- a request that must not become uncertain for nothing (`fresh`) never rides a connection that somebody used before;
- "not sent" is claimed only for failures before a connection was there; everything later may have arrived;
- our key goes to the origin of the channel's base URL and nowhere else: no exchange follows a redirect, and a fetch
  that does leaves the key behind where the origin changes;
- no proxy, cookie or netrc of the environment takes part;
- answers are bounded in size and in time.
"""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache

import aiohttp
import certifi
from yarl import URL

from libs.faults.fault import Fault
from services.provider_adapter.domain.exchange import Broken, ExchangeBroken, HttpRequest, HttpResponse
from services.provider_adapter.ports import Download, Target

USER_AGENT = "pointsman"
IDLE_S = 15.0  # below the idle limits of common gateways, so that a pooled connection is rarely a dead one
LINGER_S = 0.1
CHUNK_BYTES = 64 * 1024
REDIRECTS = 5


class _Interrupted(Exception):
    """A connection that broke. Not an aiohttp error on purpose: those would be retried."""


async def _unrepeated(
    request: aiohttp.ClientRequest, handler: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise  # nothing was sent, and aiohttp does not retry it
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Interrupted from error


class HttpDriver:
    """`Transport` over aiohttp. `open` on the event loop that will use it, `close` at the end."""

    def __init__(self, *, answer_bytes: int, connect_s: float, media_s: float) -> None:
        self._answer_bytes = answer_bytes
        self._connect_s = connect_s
        self._media_s = media_s
        self._pooled: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the two sessions: pooled connections, and connections for one request each."""
        trust = ssl.create_default_context()
        trust.load_verify_locations(certifi.where())
        # No limit of our own: how much may run at once is decided by leases, before a request comes here.
        self._pooled = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, ssl=trust))
        self._fresh = _session(aiohttp.TCPConnector(limit=0, force_close=True, ssl=trust))

    async def close(self) -> None:
        """Close every connection. Harmless when never opened."""
        for session in (self._pooled, self._fresh):
            if session is not None:
                await session.close()
        self._pooled = self._fresh = None

    async def exchange(self, request: HttpRequest, target: Target) -> HttpResponse:
        """See `Transport.exchange`."""
        seen = _Seen()
        begun = asyncio.get_running_loop().time()
        try:
            first_s = _first(target)
            async with asyncio.timeout(first_s) as limit, await self._sent(request, target, seen) as answer:
                if first_s < target.total_s:
                    limit.reschedule(begun + target.total_s)
                seen.status = answer.status
                body = await _bounded(answer, self._answer_bytes)
                return HttpResponse(answer.status, _lower(answer), body)
        except (aiohttp.ClientError, _Interrupted, OSError) as error:  # TimeoutError is an OSError
            raise ExchangeBroken(_how(error, seen.connected), seen.status) from error

    @asynccontextmanager
    async def stream(self, request: HttpRequest, target: Target) -> AsyncIterator["_Body"]:
        """See `Transport.stream`. A body that was read to its last event is given a moment to end, so that its
        connection can serve again."""
        seen = _Seen()
        try:
            async with asyncio.timeout(_first(target)):
                answer = await self._sent(request, target, seen)
        except (aiohttp.ClientError, _Interrupted, OSError) as error:
            raise ExchangeBroken(_how(error, seen.connected), seen.status) from error
        body = _Body(answer, self._answer_bytes)
        try:
            yield body
            await body.settle()
        finally:
            answer.close()

    async def _sent(self, request: HttpRequest, target: Target, seen: "_Seen") -> aiohttp.ClientResponse:
        _exchange.set(seen)
        return await self._session(request.fresh).request(
            request.method,
            _url(target.base_url, request),
            data=request.body,
            headers={**request.headers, target.auth_header: target.auth_value},
            timeout=_connecting(min(target.connect_s, target.total_s), target.connect_s),
            allow_redirects=False,
            middlewares=() if request.method == "POST" else None,
        )

    @asynccontextmanager
    async def fetch(self, url: str, door: Target | None = None) -> AsyncIterator[Download]:
        """See `Transport.fetch`."""
        seen = _Seen()
        limits = aiohttp.ClientTimeout(total=self._media_s, connect=self._connect_s, sock_connect=self._connect_s)
        session = self._session(fresh=False)
        _exchange.set(seen)
        where = _under(door.base_url, url) if door is not None and url.startswith("/") else _absolute(url)
        try:
            for _ in range(REDIRECTS + 1):
                async with session.get(
                    where, headers=_key(where, door), timeout=limits, allow_redirects=False
                ) as answer:
                    seen.status = answer.status
                    if answer.status in _REDIRECTIONS and "location" in answer.headers:
                        where = _onward(where, answer.headers["location"])
                        continue
                    encoded = "content-encoding" in answer.headers
                    length = None if encoded else answer.content_length
                    yield Download(answer.status, answer.content_type, length, answer.content.iter_chunked(CHUNK_BYTES))
                    return
        except (aiohttp.ClientError, _Interrupted, TimeoutError, ConnectionError) as error:
            raise ExchangeBroken(_how(error, seen.connected), seen.status) from error
        raise ExchangeBroken(Broken.PROTOCOL, seen.status)

    def _session(self, fresh: bool) -> aiohttp.ClientSession:
        session = self._fresh if fresh else self._pooled
        if session is None:
            raise RuntimeError("the driver is not open")
        return session


class _Seen:
    """How far an exchange has come."""

    __slots__ = ("connected", "status")

    def __init__(self) -> None:
        self.connected = False
        self.status = 0


_exchange: ContextVar[_Seen] = ContextVar("exchange")


class _Request(aiohttp.ClientRequest):
    """Tells its exchange that there is a connection. (aiohttp's tracing tells too, for a quarter of its time.)"""

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """From here on bytes may leave."""
        _exchange.get().connected = True
        return await super().send(conn)


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": USER_AGENT},
        middlewares=(_unrepeated,),
        request_class=_Request,
    )


class _Body:
    """`Streaming` over an aiohttp response."""

    def __init__(self, answer: aiohttp.ClientResponse, limit: int) -> None:
        self.status = answer.status
        self.headers = _lower(answer)
        self._answer = answer
        self._limit = limit

    async def read(self, within_s: float) -> bytes:
        """See `Streaming.read`. What is there already is waited for by nobody."""
        try:
            if data := self._answer.content.read_nowait():
                return data
            async with asyncio.timeout(within_s):
                return await self._answer.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise ExchangeBroken(_how(error, connected=True), self.status) from error

    async def rest(self, within_s: float) -> bytes:
        """See `Streaming.rest`."""
        try:
            async with asyncio.timeout(within_s):
                return await _bounded(self._answer, self._limit)
        except (aiohttp.ClientError, OSError) as error:
            raise ExchangeBroken(_how(error, connected=True), self.status) from error

    async def settle(self) -> None:
        """Let the end of the body come, briefly; a connection whose body has ended goes back to the pool by itself."""
        if self._answer.content.at_eof():
            return
        with suppress(aiohttp.ClientError, OSError):
            async with asyncio.timeout(LINGER_S):
                while not self._answer.content.at_eof():
                    await self._answer.content.readany()


def _first(target: Target) -> float:
    """Seconds in which an answer must begin."""
    return target.total_s if target.first_s is None else min(target.first_s, target.total_s)


@lru_cache(maxsize=256)
def _connecting(connect_s: float, sock_connect_s: float) -> aiohttp.ClientTimeout:
    """The limits that aiohttp watches; the others are watched here."""
    return aiohttp.ClientTimeout(total=None, connect=connect_s, sock_connect=sock_connect_s)


def _lower(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


async def _bounded(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    announced = answer.content_length
    if announced is not None and announced <= min(limit, CHUNK_BYTES) and "content-encoding" not in answer.headers:
        return await answer.content.read()
    body = bytearray()
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > limit:
            answer.close()
            raise ExchangeBroken(Broken.TOO_LARGE, answer.status)
    return bytes(body)


def _key(where: URL, door: Target | None) -> dict[str, str]:
    """The authorisation for that place: none where it is not the door's own origin."""
    if door is None or where.origin() != _absolute(door.base_url).origin():
        return {}
    return {door.auth_header: door.auth_value}


def _onward(where: URL, location: str) -> URL:
    """Where a redirect leads."""
    try:
        return _absolute(str(where.join(URL(location))))
    except ValueError:
        raise ExchangeBroken(Broken.PROTOCOL) from None


_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


@lru_cache(maxsize=1024)
def _under(base_url: str, path: str) -> URL:
    base, mark, query = base_url.partition("?")
    return _absolute(base.rstrip("/") + path + mark + query)


def _url(base_url: str, request: HttpRequest) -> URL:
    """The request's path under the base URL, whose own query stays (`?api-version=…`)."""
    try:
        url = _under(base_url, request.path)
    except ExchangeBroken as error:
        raise Fault.of("source_not_configured", "the channel's base_url is no http or https URL") from error
    return url.extend_query(request.query) if request.query else url


def _absolute(url: str) -> URL:
    try:
        parsed = URL(url)
    except (ValueError, TypeError):
        parsed = URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ExchangeBroken(Broken.PROTOCOL)
    return parsed


_REFUSED = frozenset({errno.ECONNREFUSED})
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})


def _how(error: BaseException, connected: bool) -> Broken:
    """How it broke. The order matters: aiohttp's errors inherit from one another."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return Broken.DNS
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return Broken.TLS
        case aiohttp.ClientProxyConnectionError():
            return Broken.PROXY
        case aiohttp.ConnectionTimeoutError():
            return Broken.CONNECT_TIMEOUT
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            if number in _REFUSED:
                return Broken.CONNECT_REFUSED
            return Broken.NETWORK_UNREACHABLE if number in _UNREACHABLE else Broken.CONNECT_FAILED
        case TimeoutError():
            return Broken.READ_TIMEOUT if connected else Broken.CONNECT_TIMEOUT
        case aiohttp.ClientPayloadError():
            return Broken.INCOMPLETE_BODY
        case aiohttp.ClientResponseError():
            return Broken.PROTOCOL
    return Broken.RESET if connected else Broken.CONNECT_FAILED

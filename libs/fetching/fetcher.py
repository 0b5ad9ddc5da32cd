"""The guarded fetcher: a GET of a user's URL, or a POST to it, that cannot be led astray (AUTH-4).

Laws of this file:
- a name is asked for once a connection; one address that may not be reached refuses the whole answer;
- the socket is opened to an address of that very answer, and what it is opened to is judged once more at that moment:
  no second lookup, no spelling and no redirect lies between the check and the connection;
- a connection serves one request; no redirect is followed unseen, and none of a POST; no proxy, cookie, netrc or key
  takes part;
- nothing is unpacked: the bytes that arrive are the bytes that are judged;
- the number of bytes, of redirects and of seconds is bounded, redirects and slow drips included.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import certifi
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from libs.fetching.addresses import Address, address_reason, host_reason, literal, syntax_reason
from libs.fetching.names import Names, SystemNames, UnknownName

CHUNK_BYTES = 64 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {"User-Agent": "pointsman", "Accept": "*/*", "Accept-Encoding": "identity"}


class NotAllowed(Exception):
    """The URL leads where no user's URL may lead. The text is the reason, without the URL."""


class Unreachable(Exception):
    """The URL could not be fetched. The text is the reason, without the URL."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds and hops for one URL, and how many connections there may be at once."""

    connect_s: float = 5.0
    total_s: float = 30.0
    redirects: int = 5
    connections: int = 32


@dataclass(frozen=True, slots=True)
class Rules:
    """Where a URL may lead: why a host by its words, or an address, is refused; None = it is not.

    `everywhere`: nothing is ever refused, so names need not be asked for.
    """

    host: Callable[[str], str | None] = host_reason
    address: Callable[[Address], str | None] = address_reason
    everywhere: bool = False


ANYWHERE = Rules(host=lambda host: None, address=lambda address: None, everywhere=True)
"""For development, where materials lie on this machine (`POINTSMAN_ALLOW_PRIVATE_URLS=1`)."""


def rules_of(allow_private: bool) -> Rules:
    """The rules that a setting means."""
    return ANYWHERE if allow_private else Rules()


@dataclass(frozen=True, slots=True)
class Arriving:
    """An answer whose body is still coming. `length` is the promised number of bytes, None when not promised."""

    media_type: str
    length: int | None
    chunks: AsyncIterator[bytes]


class Fetcher:
    """Fetches users' URLs. `close` at the end; the session is made at the first use, on that event loop."""

    def __init__(self, rules: Rules, names: Names | None = None, bounds: Bounds | None = None) -> None:
        self._rules = rules
        self._names = names or SystemNames()
        self._bounds = bounds or Bounds()
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close every connection. Harmless when nothing was fetched."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def refusal(self, url: str) -> str | None:
        """Why a URL that others will call may not be used, or None; a name that nobody knows is a reason too."""
        try:
            host = self._checked(url).raw_host or ""
            if literal(host) is None and not self._rules.everywhere:
                async with asyncio.timeout(self._bounds.connect_s):
                    await self._addresses(host)
        except (NotAllowed, Unreachable) as error:
            return str(error)
        except TimeoutError:
            return "names a host that is not found in time"
        return None

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """POST the body; the status of the answer, whose content nobody reads. Raises NotAllowed or Unreachable."""
        async with self._guarded():
            place = self._checked(url)
            async with self._opened().post(place, data=body, headers=headers, allow_redirects=False) as answer:
                return answer.status

    @asynccontextmanager
    async def fetch(self, url: str, max_bytes: int) -> AsyncIterator[Arriving]:
        """The bytes behind a URL. Raises NotAllowed or Unreachable, also from the chunks."""
        async with self._guarded(), self._answer(url) as answer:
            yield _arriving(answer, max_bytes)

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        """Bounded in time; what goes wrong is said in our own words."""
        try:
            async with asyncio.timeout(self._bounds.total_s):
                yield
        except aiohttp.ConnectionTimeoutError:
            raise Unreachable("does not answer") from None
        except TimeoutError:
            raise Unreachable(f"did not arrive within {self._bounds.total_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            refused = _refused(error)
            if refused is not None:
                raise refused from None
            raise Unreachable(_words(error)) from None

    @asynccontextmanager
    async def _answer(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer at the end of the redirects."""
        place = self._checked(url)
        for _ in range(self._bounds.redirects + 1):
            async with self._opened().get(place, allow_redirects=False) as answer:
                if answer.status not in REDIRECTS:
                    yield answer
                    return
                place = self._next(place, answer.headers.get("Location", ""))
        raise Unreachable(f"leads through more than {self._bounds.redirects} redirects")

    def _next(self, place: URL, location: str) -> URL:
        try:
            return self._checked(_joined(place, location))
        except NotAllowed as error:
            raise NotAllowed(f"redirects to a URL that {error}") from None

    def _checked(self, url: str) -> URL:
        """The URL as it will be called, judged as far as its words tell."""
        reason = syntax_reason(url)
        if reason is not None:
            raise NotAllowed(reason)
        try:
            place = URL(url)
            host = place.raw_host  # what is really looked up: other alphabets have become ASCII
        except ValueError:
            raise NotAllowed("is not a URL") from None
        if not host or place.user is not None or place.scheme not in ("http", "https"):
            raise NotAllowed("is not a URL")
        address = literal(host.lower().rstrip("."))
        reason = self._rules.host(host) if address is None else self._rules.address(address)
        if reason is not None:
            raise NotAllowed(reason)
        return place

    async def _addresses(self, host: str) -> list[Address]:
        """Every address of a name, all of them admitted."""
        try:
            spelled = await self._names.addresses(host)
            found = [ipaddress.ip_address(text.split("%")[0]) for text in spelled]
        except (UnknownName, ValueError):
            raise Unreachable("names a host that is not found") from None
        for address in found:
            reason = self._rules.address(address)
            if reason is not None:
                raise NotAllowed(reason)
        return found

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            trust = ssl.create_default_context()
            trust.load_verify_locations(certifi.where())
            connector = aiohttp.TCPConnector(
                resolver=_Checking(self._addresses),
                use_dns_cache=False,
                force_close=True,
                limit=self._bounds.connections,
                ssl=trust,
                socket_factory=self._socket,
            )
            limits = aiohttp.ClientTimeout(total=self._bounds.total_s, sock_connect=self._bounds.connect_s)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=HEADERS,
                timeout=limits,
                auto_decompress=False,
            )
        return self._session

    def _socket(self, info: Any) -> socket.socket:
        """The last check: what this socket is about to be connected to."""
        family, kind, protocol, _, target = info
        reason = self._rules.address(ipaddress.ip_address(str(target[0]).split("%")[0]))
        if reason is not None:
            raise _RefusedSocket(NotAllowed(reason))
        return socket.socket(family=family, type=kind, proto=protocol)


class _RefusedSocket(OSError):
    """Carries a refusal through a library that handles errors of the system only."""

    def __init__(self, why: NotAllowed | Unreachable) -> None:
        super().__init__(str(why))
        self.why = why


class _Checking(AbstractResolver):
    """aiohttp's view of the lookup: what it gets is what it connects to."""

    def __init__(self, addresses: Callable[[str], Any]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The admitted addresses of a name."""
        try:
            found = await self._addresses(host)
        except (NotAllowed, Unreachable) as error:
            raise _RefusedSocket(error) from None
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(
                hostname=host, host=str(address), port=port, proto=0, flags=flags,
                family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
            )
            for address in found
        ]  # fmt: skip

    async def close(self) -> None:
        """Nothing is held."""


def _arriving(answer: aiohttp.ClientResponse, max_bytes: int) -> Arriving:
    if answer.status != 200:
        raise Unreachable(f"answered with status {answer.status}")
    if answer.headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
        raise Unreachable("answered with compressed content though none was asked for")
    length = answer.content_length
    if length is not None and length > max_bytes:
        raise Unreachable(f"has {length} bytes; {max_bytes} are accepted")
    return Arriving(answer.content_type, length, _bounded(answer, length, max_bytes))


async def _bounded(answer: aiohttp.ClientResponse, length: int | None, max_bytes: int) -> AsyncIterator[bytes]:
    count = 0
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        count += len(chunk)
        if count > max_bytes:
            raise Unreachable(f"has more than the {max_bytes} bytes that are accepted")
        yield chunk
    if length is not None and count != length:
        raise Unreachable(f"broke off after {count} of {length} bytes")


def _joined(place: URL, location: str) -> str:
    if not location:
        raise Unreachable("redirects without saying where")
    try:
        return str(place.join(URL(location)))
    except ValueError:
        raise Unreachable("redirects to something that is no URL") from None


def _refused(error: BaseException | None) -> NotAllowed | Unreachable | None:
    """The refusal that lies inside an error of the connection."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, _RefusedSocket):
            return error.why
        error = getattr(error, "os_error", None) or error.__cause__ or error.__context__
    return None


def _words(error: BaseException) -> str:
    """What went wrong, in fixed words: a library's own text may repeat the URL."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return "cannot be trusted: its certificate does not fit"
        case aiohttp.ClientConnectorError():
            return "cannot be connected to"
        case aiohttp.ClientPayloadError():
            return "broke off before it was complete"
        case aiohttp.ClientResponseError():
            return "answered with something that is not HTTP"
    return "broke off"

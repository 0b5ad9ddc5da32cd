"""One HTTP exchange as values: the request that an adapter builds, the response that it reads, or the way it broke."""

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Phase(StrEnum):
    """When in a job's life an exchange happens; the same 404 means the model on submit and the task on poll."""

    SUBMIT = "submit"
    POLL = "poll"
    STREAM = "stream"
    CANCEL = "cancel"
    RECONCILE = "reconcile"


class Broken(StrEnum):
    """How an exchange broke without an answer. The first group happens before a byte of the request has left."""

    DNS = "dns"
    TLS = "tls"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_FAILED = "connect_failed"
    NETWORK_UNREACHABLE = "network_unreachable"
    RESET_BEFORE_SEND = "reset_before_send"
    REFUSED_STREAM = "http2_refused_stream"
    PROXY = "proxy"
    POOL_TIMEOUT = "pool_timeout"

    WRITE_TIMEOUT = "write_timeout"
    READ_TIMEOUT = "read_timeout"
    RESET = "reset"
    GOAWAY = "http2_goaway"
    INCOMPLETE_BODY = "incomplete_body"
    TOO_LARGE = "too_large"
    PROTOCOL = "protocol"


# The same in the words of other clients. What may have happened while bytes were under way is not in it.
_SYNONYMS = (
    (re.compile(r"refused"), Broken.CONNECT_REFUSED),
    (re.compile(r"dns|name.?resolution|resolve|enotfound|getaddrinfo"), Broken.DNS),
    (re.compile(r"unreach"), Broken.NETWORK_UNREACHABLE),
    (re.compile(r"handshake|certificate|(ssl|tls).?(cert|verif)"), Broken.TLS),
    (re.compile(r"conn\w*.?time(d)?.?out"), Broken.CONNECT_TIMEOUT),
)


def broken_of(name: str) -> Broken | None:
    """The way that a name means, in our words or in those of other clients; None for what nobody knows."""
    lowered = name.strip().lower()
    ours = next((how for how in Broken if how.value == lowered), None)
    return ours or next((how for pattern, how in _SYNONYMS if pattern.search(lowered)), None)


BEFORE_SENDING = frozenset(
    {
        Broken.DNS,
        Broken.TLS,
        Broken.CONNECT_REFUSED,
        Broken.CONNECT_TIMEOUT,
        Broken.CONNECT_FAILED,
        Broken.NETWORK_UNREACHABLE,
        Broken.RESET_BEFORE_SEND,
        Broken.REFUSED_STREAM,
        Broken.PROXY,
        Broken.POOL_TIMEOUT,
    }
)


class HttpRequest(Struct, frozen=True):
    """What an adapter wants sent. `path` is appended to the channel's base URL; authorisation is added by the driver.

    `body` is None for none. `fresh` asks for a connection that nobody used before, so that a stale keep-alive
    connection cannot make the outcome unknown; submissions of paid jobs ask for it.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    fresh: bool = False


class HttpResponse(Struct, frozen=True):
    """A complete answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @property
    def media_type(self) -> str:
        """The media type without parameters, lower case; "" when the answer names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class ExchangeBroken(Exception):
    """There is no complete answer. `status` is that of an answer which began (0: none did)."""

    def __init__(self, how: Broken, status: int = 0) -> None:
        super().__init__(str(how))
        self.how = how
        self.status = status

    @property
    def may_have_arrived(self) -> bool:
        """False only when no byte of the request can have left."""
        return self.how not in BEFORE_SENDING


class Reply(Struct, frozen=True):
    """Everything that a judgement may look at: an answer (`status` > 0) or the way the exchange broke, or both."""

    status: int = 0
    headers: Mapping[str, str] = {}
    body: bytes = b""
    transport_error: str = ""

    @classmethod
    def of(cls, response: HttpResponse) -> "Reply":
        """The reply of a complete answer."""
        return cls(response.status, response.headers, response.body)

    @classmethod
    def broken(cls, error: ExchangeBroken) -> "Reply":
        """The reply that is none."""
        return cls(error.status, transport_error=error.how.value)

    @classmethod
    def broken_off(cls, headers: Mapping[str, str], how: Broken) -> "Reply":
        """The reply of an answer that began well and did not end."""
        return cls(200, headers, transport_error=how.value)

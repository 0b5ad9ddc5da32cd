"""What this context needs of the machines around it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from libs.blobs.blob import Blob
from services.provider_adapter.domain.exchange import HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Content
from services.provider_adapter.domain.outcomes import Stored


class Target(Struct, frozen=True):
    """Where a request goes: the base URL, the header that authorises it, and the limits in seconds: connecting, all of
    it, and until the answer begins (None: no limit of its own).

    Its text forms hide the header's value.
    """

    base_url: str
    auth_header: str
    auth_value: str
    connect_s: float
    total_s: float
    first_s: float | None = None

    def __repr__(self) -> str:
        return f"Target({self.base_url!r}, {self.auth_header}: hidden)"


@dataclass(frozen=True, slots=True)
class Download:
    """An answer whose body is still coming. `length` is the promised number of bytes, None when not promised."""

    status: int
    media_type: str
    length: int | None
    chunks: AsyncIterator[bytes]


class Streaming(Protocol):
    """An answer whose body is being read. Header names are lower case."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        ...

    async def read(self, within_s: float) -> bytes:
        """The next bytes, whatever came; b"" at the end of the body. Raises ExchangeBroken, READ_TIMEOUT in time."""
        ...

    async def rest(self, within_s: float) -> bytes:
        """The whole rest of the body, bounded like any answer. Raises ExchangeBroken."""
        ...


class Transport(Protocol):
    """The way outward.

    Laws: a request is sent at most once per call of `exchange`, whatever becomes of it; nothing follows a redirect of
    a request that carries authorisation; an answer is complete or it is no answer.
    """

    async def exchange(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Send and wait for the whole answer.

        Raises ExchangeBroken, whose `may_have_arrived` is False only when surely no byte has left; Fault
        `source_not_configured` when the base URL is none.
        """
        ...

    def stream(self, request: HttpRequest, target: Target) -> AbstractAsyncContextManager[Streaming]:
        """Send, wait for the head of the answer, and give its body to be read within the block, each read with its own
        limit.

        Leaving the block before the end of the body closes the connection, so that the provider stops. Raises as
        `exchange` does.
        """
        ...

    def fetch(self, url: str, door: Target | None = None) -> AbstractAsyncContextManager[Download]:
        """GET a result by its own URL. Raises ExchangeBroken, also from the chunks.

        Without `door` no authorisation is sent. With it, `url` may be a path under its base URL, and its authorisation
        goes to the origin of that base URL only: not to another host, and not along a redirect to one.
        """
        ...


class MediaStore(Protocol):
    """Where media are kept, by digest."""

    async def keep(self, chunks: AsyncIterator[bytes], media_type: str, max_bytes: int) -> Stored:
        """Store a stream; one that raises leaves nothing behind. Fault `payload_too_large` beyond the limit."""
        ...

    async def about(self, sha256: str) -> Stored:
        """The facts about an artifact. Fault `material_unreachable` when it is not there."""
        ...

    async def content(self, sha256: str, max_bytes: int) -> Content:
        """The bytes of a small artifact. Fault `material_unreachable` when it is not there or too large."""
        ...


class MaterialIntake(Protocol):
    """The one way in for materials (AUTH-4): `libs.materials.intake`. `family` is image, video, audio, or "" = any."""

    async def refusal(self, url: str) -> str | None:
        """Why a URL that is only passed on may not be used, or None."""
        ...

    async def from_url(self, url: str, family: str) -> Blob:
        """Fetch, judge and keep. Raises NotAllowed or Unfit."""
        ...

    async def from_bytes(self, content: bytes, family: str) -> Blob:
        """Judge and keep bytes. Raises Unfit."""
        ...


class MaterialLinks(Protocol):
    """Links under which a provider may read one material for a while: `libs.materials.links`."""

    def url(self, sha256: str, now: datetime) -> str:
        """The link, good for a day. It opens the material by itself: no log may tell it."""
        ...


class Secrets(Protocol):
    """Secrets by reference: `env:NAME` or `file:PATH`, read anew at every call, so that a rotation is seen."""

    def value(self, ref: str) -> str:
        """The secret. Fault `source_not_configured` when it cannot be read."""
        ...

    def problem(self, ref: str) -> str:
        """Why the reference cannot be read, "" when it can. Never the secret."""
        ...

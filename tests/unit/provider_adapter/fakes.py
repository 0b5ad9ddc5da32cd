"""Fakes of the ports: a transport that plays what a test says, a media store in memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from libs.blobs.blob import Blob
from libs.faults.fault import Fault
from libs.materials.intake import Unfit
from libs.materials.sniffing import sniff
from services.provider_adapter.domain.exchange import ExchangeBroken, HttpRequest, HttpResponse
from services.provider_adapter.domain.job import Content
from services.provider_adapter.domain.media import digest
from services.provider_adapter.domain.outcomes import Stored
from services.provider_adapter.ports import Download, Target


@dataclass
class PlayedStream:
    """Implements `Streaming`: its parts in turn, an exception being raised. `waits` are the limits it was read with;
    `before` is called before each part, with its number from 0."""

    parts: list[bytes | ExchangeBroken]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    before: Callable[[int], object] = lambda number: None
    waits: list[float] = field(default_factory=list)

    async def read(self, within_s: float) -> bytes:
        """The next part."""
        self.before(len(self.waits))
        self.waits.append(within_s)
        part = self.parts.pop(0) if self.parts else b""
        if isinstance(part, ExchangeBroken):
            raise part
        return part

    async def rest(self, within_s: float) -> bytes:
        """All parts."""
        return b"".join([part async for part in self._all()])

    async def _all(self) -> AsyncIterator[bytes]:
        while part := await self.read(0):
            yield part


Play = HttpResponse | ExchangeBroken | PlayedStream
MP4 = b"\x00\x00\x00\x18ftypmp42" + b"v" * 100


@dataclass
class PlayedTransport:
    """Implements `Transport`. `plays` are the answers in turn; `files` what `fetch` finds, in turn per URL."""

    plays: list[Play] = field(default_factory=list)
    files: dict[str, list[Any]] = field(default_factory=dict)
    sent: list[tuple[HttpRequest, Target]] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    doors: list[Target | None] = field(default_factory=list)

    async def exchange(self, request: HttpRequest, target: Target) -> HttpResponse:
        """The next play."""
        self.sent.append((request, target))
        play = self.plays.pop(0)
        if isinstance(play, ExchangeBroken):
            raise play
        return play

    @asynccontextmanager
    async def stream(self, request: HttpRequest, target: Target) -> AsyncIterator[PlayedStream]:
        """The next play, which is a stream or breaks."""
        self.sent.append((request, target))
        play = self.plays.pop(0)
        if isinstance(play, ExchangeBroken):
            raise play
        yield play

    @asynccontextmanager
    async def fetch(self, url: str, door: Target | None = None) -> AsyncIterator[Download]:
        """The next file of that URL; the last one stays."""
        self.fetched.append(url)
        self.doors.append(door)
        files = self.files[url]
        file = files.pop(0) if len(files) > 1 else files[0]
        if isinstance(file, Exception):
            raise file
        yield file() if isinstance(file, Callable) else file


def download(data: bytes, media_type: str = "video/mp4", status: int = 200, length: int | None = None) -> Any:
    """Makes a Download of these bytes, anew at every fetch."""

    def make() -> Download:
        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(data), 10):
                yield data[start : start + 10]

        return Download(status, media_type, len(data) if length is None else length, chunks())

    return make


@dataclass
class MemoryMedia:
    """Implements `MediaStore`. `down` lets it fail."""

    kept: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    down: bool = False

    async def keep(self, chunks: AsyncIterator[bytes], media_type: str, max_bytes: int) -> Stored:
        """See `MediaStore.keep`."""
        data = b"".join([chunk async for chunk in chunks])
        if self.down:
            raise Fault.of("governance_backend_down")
        if len(data) > max_bytes:
            raise Fault.of("payload_too_large")
        blob = Blob(digest(data), len(data), media_type)
        self.kept[blob.sha256] = (data, media_type)
        return Stored(blob.sha256, media_type, len(data))

    async def about(self, sha256: str) -> Stored:
        """See `MediaStore.about`."""
        if sha256 not in self.kept:
            raise Fault.of("material_unreachable")
        data, media_type = self.kept[sha256]
        return Stored(sha256, media_type, len(data))

    async def content(self, sha256: str, max_bytes: int) -> Content:
        """See `MediaStore.content`."""
        if sha256 not in self.kept or len(self.kept[sha256][0]) > max_bytes:
            raise Fault.of("material_unreachable")
        return Content(*self.kept[sha256])


@dataclass
class PlayedIntake:
    """Implements `MaterialIntake` over a media store: `pages` are what URLs hold, or what they raise."""

    store: MemoryMedia
    pages: dict[str, bytes | Exception] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    taken: list[tuple[str, str]] = field(default_factory=list)

    async def refusal(self, url: str) -> str | None:
        """See the port."""
        return self.refused.get(url)

    async def from_url(self, url: str, family: str) -> Blob:
        """See the port."""
        self.taken.append((url, family))
        page = self.pages[url]
        if isinstance(page, Exception):
            raise page
        return await self.from_bytes(page, family)

    async def from_bytes(self, content: bytes, family: str) -> Blob:
        """See the port."""
        if sniff(content).partition("/")[0] != family:
            raise Unfit(f"is no {family}")
        self.store.kept[digest(content)] = (content, sniff(content))
        return Blob(digest(content), len(content), sniff(content))

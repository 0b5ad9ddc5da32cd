"""The one way in for materials: arrive, be judged, be kept once (AUTH-4).

Laws of this file:
- the bytes that were judged are the bytes that are kept, and their digest is the material's name from then on;
- a URL, bytes in a request and an artifact that was uploaded before are judged by the same rule;
- nothing is kept of what was refused, and no URL is told: logs name its digest.
"""

import asyncio
import logging
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from libs.blobs.blob import CHUNK_BYTES, Blob, Blobs
from libs.blobs.disk import on_disk
from libs.fetching.fetcher import Fetcher, NotAllowed, Unreachable
from libs.kernel.canonical import digest
from libs.materials.limits import ACCEPTED, Limits, Measures, measure_reason, type_reason
from libs.materials.probing import Unreadable, probe
from libs.materials.sniffing import SNIFF_BYTES, belongs, sniff

AT_ONCE, PROBES_AT_ONCE = 32, 2
REMEMBERED = 10_000

log = logging.getLogger(__name__)


class Unfit(Exception):
    """The material cannot be had, or is not what is accepted. The text is the reason, without URL or content."""


class Intake:
    """Takes materials in. `family` is `image`, `video`, `audio`, or "" where any of them will do."""

    def __init__(self, fetcher: Fetcher, blobs: Blobs, accepted: Mapping[str, Limits] = ACCEPTED) -> None:
        self._fetcher = fetcher
        self._blobs = blobs
        self._accepted = accepted
        self._arrivals = asyncio.Semaphore(AT_ONCE)
        self._probes = asyncio.Semaphore(PROBES_AT_ONCE)
        self._judged: OrderedDict[tuple[str, str], Measures] = OrderedDict()

    async def close(self) -> None:
        """Close what is open to the outside."""
        await self._fetcher.close()

    async def refusal(self, url: str) -> str | None:
        """Why a URL that is only passed on may not be used, or None."""
        return await self._fetcher.refusal(url)

    async def from_url(self, url: str, family: str) -> Blob:
        """Fetch and keep. NotAllowed or Unfit; Fault of the store."""
        async with self._arrivals:
            try:
                async with self._fetcher.fetch(url, self._most_bytes(family)) as arriving:
                    with tempfile.TemporaryDirectory(prefix="pointsman-material-") as folder:
                        path = Path(folder) / "material"
                        await _spool(path, arriving.chunks)
                        blob = await self._keep(path, family)
            except Unreachable as error:
                raise Unfit(str(error)) from None
        log.info("material taken in", extra={"source": digest(url), "sha256": blob.sha256, "bytes": blob.bytes})
        return blob

    async def from_bytes(self, content: bytes, family: str) -> Blob:
        """Keep bytes that came in a request. Unfit; Fault of the store."""
        if len(content) > self._most_bytes(family):
            raise Unfit(f"has {len(content)} bytes; {self._most_bytes(family)} are accepted")
        async with self._arrivals:
            with tempfile.TemporaryDirectory(prefix="pointsman-material-") as folder:
                path = Path(folder) / "material"
                await _spool(path, _once(content))
                return await self._keep(path, family)

    async def check(self, blob: Blob, family: str) -> None:
        """Judge an artifact that is kept already, once for each family. Unfit; Fault of the store."""
        if (blob.sha256, family) in self._judged:
            self._judged.move_to_end((blob.sha256, family))
            return
        if blob.bytes > self._most_bytes(family):
            raise Unfit(f"has {blob.bytes} bytes; {self._most_bytes(family)} are accepted")
        async with self._arrivals:
            with tempfile.TemporaryDirectory(prefix="pointsman-material-") as folder:
                path = Path(folder) / "material"
                await _spool(path, self._blobs.open(blob.sha256))
                self._remember(blob.sha256, family, await self._judge(path, family))

    async def _keep(self, path: Path, family: str) -> Blob:
        seen = await self._judge(path, family)
        blob = await self._blobs.put(_pieces(path), seen.media_type)
        self._remember(blob.sha256, family, seen)
        return blob

    async def _judge(self, path: Path, family: str) -> Measures:
        head = await on_disk(_head, path)
        if not head:
            raise Unfit("is empty")
        media_type = sniff(head)
        family = family or next((name for name in self._accepted if belongs(media_type, name)), "")
        limits = self._accepted.get(family)
        if limits is None:
            raise Unfit("is no picture, clip or sound that is accepted")
        reason = type_reason(media_type, family, limits)
        if reason is None:
            async with self._probes:
                try:
                    seen = await probe(path, media_type, family, limits.pixels)
                except Unreadable as error:
                    raise Unfit(str(error)) from None
            reason = measure_reason(seen, limits)
        if reason is not None:
            raise Unfit(reason)
        return seen

    def _most_bytes(self, family: str) -> int:
        if family in self._accepted:
            return self._accepted[family].bytes
        return max(limits.bytes for limits in self._accepted.values())

    def _remember(self, sha256: str, family: str, seen: Measures) -> None:
        self._judged[sha256, family] = seen
        while len(self._judged) > REMEMBERED:
            self._judged.popitem(last=False)


__all__ = ["Intake", "NotAllowed", "Unfit"]


async def _spool(path: Path, chunks: AsyncIterator[bytes]) -> None:
    with path.open("xb") as file:
        async for chunk in chunks:
            await on_disk(file.write, chunk)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await on_disk(file.read, CHUNK_BYTES):
            yield chunk


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SNIFF_BYTES)

"""Media in libs/blobs."""

from collections.abc import AsyncIterator

from libs.blobs.blob import Blobs
from libs.faults.fault import Fault
from libs.materials.sniffing import SNIFF_BYTES, sniff
from services.provider_adapter.domain.job import Content
from services.provider_adapter.domain.outcomes import Stored


class BlobMedia:
    """`MediaStore` over a store of blobs."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def keep(self, chunks: AsyncIterator[bytes], media_type: str, max_bytes: int) -> Stored:
        """See `MediaStore.keep`."""
        blob = await self._blobs.put(chunks, media_type, max_bytes=max_bytes)
        return Stored(blob.sha256, blob.media_type, blob.bytes)

    async def about(self, sha256: str) -> Stored:
        """See `MediaStore.about`."""
        try:
            blob = await self._blobs.stat(sha256)
        except Fault as fault:
            if fault.code != "not_found":
                raise
            raise Fault.of("material_unreachable", f"artifact {sha256[:64]} is not stored here") from fault
        return Stored(blob.sha256, blob.media_type, blob.bytes)

    async def content(self, sha256: str, max_bytes: int) -> Content:
        """See `MediaStore.content`. The type is that of the bytes; whoever brought them first may have said another."""
        found = await self.about(sha256)
        if found.size_bytes > max_bytes:
            text = f"artifact {sha256} has {found.size_bytes} bytes, {max_bytes} can be sent"
            raise Fault.of("material_unreachable", text)
        data = await self._blobs.read(sha256)
        return Content(data, sniff(data[:SNIFF_BYTES]) or found.media_type)

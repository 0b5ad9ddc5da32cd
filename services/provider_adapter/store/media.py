"""Media in libs/blobs."""

from collections.abc import AsyncIterator

from libs.blobs.blob import Blobs
from libs.faults.fault import Fault
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

    async def content(self, sha256: str, max_bytes: int) -> Content:
        """See `MediaStore.content`."""
        try:
            blob = await self._blobs.stat(sha256)
        except Fault as fault:
            if fault.code != "not_found":
                raise
            raise Fault.of("material_unreachable", f"artifact {sha256[:64]} is not stored here") from fault
        if blob.bytes > max_bytes:
            raise Fault.of("material_unreachable", f"artifact {sha256} has {blob.bytes} bytes, {max_bytes} can be sent")
        return Content(await self._blobs.read(sha256), blob.media_type)

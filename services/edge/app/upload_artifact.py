"""Keep bytes that a tenant sends, so that runs can name them."""

from collections.abc import AsyncIterator

from libs.blobs.blob import Blob, Blobs
from libs.materials.sniffing import SNIFF_BYTES, sniff
from services.edge.app.reveal import Reveal


async def upload_artifact(
    blobs: Blobs, reveal: Reveal, tenant: str, content: AsyncIterator[bytes], media_type: str, limit_bytes: int
) -> Blob:
    """The blob, readable by the tenant. Fault payload_too_large as soon as the content exceeds the limit.

    Media are named by what they are; `media_type` is believed of bytes that nobody recognises. Whether they serve as a
    material is judged where an input names them, by the field that they stand in.
    """
    head = b""
    async for chunk in content:
        head += chunk
        if len(head) >= SNIFF_BYTES:
            break
    blob = await blobs.put(_after(head, content), sniff(head) or media_type, max_bytes=limit_bytes)
    await reveal.grant(tenant, [blob.sha256])
    return blob


async def _after(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield head
    async for chunk in rest:
        yield chunk

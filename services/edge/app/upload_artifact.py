"""Keep bytes that a tenant sends, so that runs can name them."""

from collections.abc import AsyncIterable

from libs.blobs.blob import Blob, Blobs
from services.edge.app.reveal import Reveal


async def upload_artifact(
    blobs: Blobs, reveal: Reveal, tenant: str, content: AsyncIterable[bytes], media_type: str, limit_bytes: int
) -> Blob:
    """The blob, readable by the tenant. Fault payload_too_large as soon as the content exceeds the limit."""
    blob = await blobs.put(content, media_type, max_bytes=limit_bytes)
    await reveal.grant(tenant, [blob.sha256])
    return blob

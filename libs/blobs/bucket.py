"""Blobs in an S3-compatible bucket, through obstore. Keys are `ab/ab12…` under the bucket's prefix.

A put spools to a local file first: the key is the digest, and that is known only at the end. The bucket keeps the media
type as the object's Content-Type; its own upload is atomic, so nothing half is ever seen.
"""

import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from libs.blobs.blob import (
    CHUNK_BYTES,
    UNKNOWN_TYPE,
    Blob,
    ByteRange,
    checked_digest,
    checked_media_type,
    missing,
    resolved,
    verified,
)
from libs.blobs.disk import on_disk
from libs.blobs.upload import Upload, chunks_of, sweep
from libs.faults.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obstore.store import ObjectStore


class BucketBlobs:
    """`Blobs` in an object store. Credentials and endpoint come with the store (`AWS_*` variables)."""

    def __init__(self, store: "ObjectStore", spool: Path | None = None) -> None:
        """`spool` is a local directory for uploads in progress; by default one in the system's temporary folder."""
        self._store = store
        self._spool = spool or Path(tempfile.gettempdir()) / "pointsman-uploads"

    async def put(
        self, source: bytes | AsyncIterable[bytes], media_type: str = UNKNOWN_TYPE, *, max_bytes: int | None = None
    ) -> Blob:
        """See `Blobs.put`."""
        checked_media_type(media_type)
        with Upload(self._spool, max_bytes) as upload:
            async for chunk in chunks_of(source):
                await on_disk(upload.write, chunk)
            found = await self._find(upload.sha256)
            if found is not None:
                return found
            with _answering():
                try:
                    await obstore.put_async(
                        self._store,
                        _key(upload.sha256),
                        upload.path,
                        attributes={"Content-Type": media_type},
                        mode="create",
                        use_multipart=False,
                    )
                except AlreadyExistsError:
                    return await self.stat(upload.sha256)  # somebody put the same bytes at the same time
            return Blob(upload.sha256, upload.bytes, media_type)

    async def stat(self, sha256: str) -> Blob:
        """See `Blobs.stat`."""
        found = await self._find(checked_digest(sha256))
        if found is None:
            raise missing(sha256)
        return found

    async def open(
        self, sha256: str, byte_range: ByteRange | None = None, *, verify: bool = False
    ) -> AsyncIterator[bytes]:
        """See `Blobs.open`."""
        blob = await self.stat(sha256)
        start, end = resolved(byte_range, blob)
        if verify:
            await self.read(sha256)
        if start == end:
            return
        with _answering():
            answer = await obstore.get_async(self._store, _key(sha256), options={"range": (start, end)})
            async for chunk in answer.stream(min_chunk_size=CHUNK_BYTES):
                yield bytes(chunk)

    async def read(self, sha256: str) -> bytes:
        """See `Blobs.read`."""
        return await verified(sha256, self.open(sha256))

    async def sweep(self) -> int:
        """See `Blobs.sweep`."""
        return await on_disk(sweep, self._spool)

    async def _find(self, sha256: str) -> Blob | None:
        with _answering():
            try:
                answer = await obstore.get_async(self._store, _key(sha256), options={"head": True})
            except (NotFoundError, FileNotFoundError):
                return None
            media_type = answer.attributes.get("Content-Type", UNKNOWN_TYPE)
            return Blob(sha256, answer.meta["size"], media_type)


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


@contextmanager
def _answering() -> "Iterator[None]":
    try:
        yield
    except (BaseError, OSError) as error:
        raise Fault.of("governance_backend_down", "the object store does not answer as it should") from error

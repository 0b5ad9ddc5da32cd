"""Blobs in a directory: `ROOT/ab/ab12…`, next to each `….type` with its media type; `ROOT/incoming/` for uploads.

Several processes may share one directory. The type is in place before the bytes are, so whoever sees the bytes finds
their type. Files are written, synced and renamed; the folder is synced after, so a returned `put` survives a crash.
"""

import hashlib
import os
from collections.abc import AsyncIterable, AsyncIterator
from io import FileIO
from pathlib import Path

from libs.blobs.blob import (
    CHUNK_BYTES,
    UNKNOWN_TYPE,
    Blob,
    ByteRange,
    CorruptBlob,
    checked_digest,
    checked_media_type,
    missing,
    resolved,
    verified,
)
from libs.blobs.disk import on_disk
from libs.blobs.upload import Upload, chunks_of, sweep


class LocalBlobs:
    """`Blobs` in a directory of this machine (or of a file system that locks and renames as a local one does)."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._incoming = self._root / "incoming"

    async def put(
        self, source: bytes | AsyncIterable[bytes], media_type: str = UNKNOWN_TYPE, *, max_bytes: int | None = None
    ) -> Blob:
        """See `Blobs.put`."""
        checked_media_type(media_type)
        with Upload(self._incoming, max_bytes) as upload:
            async for chunk in chunks_of(source):
                await on_disk(upload.write, chunk)
            return await on_disk(self._keep, upload, media_type)

    async def stat(self, sha256: str) -> Blob:
        """See `Blobs.stat`."""
        return await on_disk(self._stat, checked_digest(sha256))

    async def open(
        self, sha256: str, byte_range: ByteRange | None = None, *, verify: bool = False
    ) -> AsyncIterator[bytes]:
        """See `Blobs.open`."""
        blob = await self.stat(sha256)
        start, end = resolved(byte_range, blob)
        with self._reader(sha256) as file:
            if verify:
                await on_disk(_check, file, sha256)
            file.seek(start)
            while start < end:
                chunk = await on_disk(file.read, min(CHUNK_BYTES, end - start))
                if not chunk:
                    raise CorruptBlob(f"blob {sha256} was cut short while it was read")
                start += len(chunk)
                yield chunk

    async def read(self, sha256: str) -> bytes:
        """See `Blobs.read`."""
        return await verified(sha256, self.open(sha256))

    async def sweep(self) -> int:
        """See `Blobs.sweep`."""
        return await on_disk(sweep, self._incoming)

    def _reader(self, sha256: str) -> FileIO:
        try:
            return FileIO(self._path(sha256), "rb")
        except FileNotFoundError:
            raise missing(sha256) from None

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256

    def _stat(self, sha256: str) -> Blob:
        path = self._path(sha256)
        try:
            return Blob(sha256, path.stat().st_size, path.with_suffix(".type").read_text())
        except FileNotFoundError:
            raise missing(sha256) from None

    def _keep(self, upload: Upload, media_type: str) -> Blob:
        """Give the upload its name, unless equal bytes have it already."""
        target = self._path(upload.sha256)
        if target.exists():
            return self._stat(upload.sha256)
        upload.sync()
        target.parent.mkdir(parents=True, exist_ok=True)
        self._keep_type(target.with_suffix(".type"), media_type)
        upload.path.rename(target)  # of two that put equal bytes at once the later one replaces the same by the same
        _sync_folder(target.parent)
        _sync_folder(self._root)
        return self._stat(upload.sha256)

    def _keep_type(self, path: Path, media_type: str) -> None:
        with Upload(self._incoming, None) as note:
            note.write(media_type.encode())
            note.sync()
            try:
                os.link(note.path, path)  # unlike a rename it never replaces: the type told first stays
            except FileExistsError:
                return


def _check(file: FileIO, sha256: str) -> None:
    if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
        raise CorruptBlob(f"blob {sha256} is damaged")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

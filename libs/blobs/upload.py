"""The first half of every put: bytes into a private file while they are counted and hashed.

A digest is known only at the end, so nothing can have its final name before. The file is locked for as long as its
writer lives; `sweep` removes those that nobody holds any more, without guessing by age.
"""

import fcntl
import hashlib
import os
import uuid
from collections.abc import AsyncIterable
from pathlib import Path
from types import TracebackType

from libs.blobs.blob import CHUNK_BYTES
from libs.faults.fault import Fault

SUFFIX = ".part"


class Upload:
    """One file under `folder`, written once. Use as a context manager: at its end the file is gone unless moved."""

    def __init__(self, folder: Path, max_bytes: int | None) -> None:
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self.bytes = 0
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            self.path = folder / f"{uuid.uuid4().hex}{SUFFIX}"
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if os.fstat(self._descriptor).st_nlink:
                return
            os.close(self._descriptor)  # a sweep was quicker than the lock

    def __enter__(self) -> "Upload":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, t: TracebackType | None) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    @property
    def sha256(self) -> str:
        """The digest of what has been written."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append. Raises Fault `payload_too_large` before anything beyond the limit is written. Blocks."""
        self.bytes += len(chunk)
        if self._max_bytes is not None and self.bytes > self._max_bytes:
            raise Fault.of("payload_too_large", f"the content has more than the {self._max_bytes} bytes accepted")
        self._hash.update(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._descriptor, view) :]

    def sync(self) -> None:
        """Return when the bytes are on the medium. Blocks."""
        os.fsync(self._descriptor)


async def chunks_of(source: bytes | AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    """The source in pieces that are worth a trip to a thread: small ones are gathered."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        yield bytes(source)
        return
    gathered = bytearray()
    async for piece in source:
        gathered += piece
        if len(gathered) >= CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def sweep(folder: Path) -> int:
    """Remove the files whose writers are gone; how many. Blocks."""
    removed = 0
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its writer is at work
        else:
            path.unlink(missing_ok=True)
            removed += 1
        finally:
            os.close(descriptor)
    return removed

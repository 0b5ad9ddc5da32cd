"""What a store of blobs promises. `tests/contract/blobs` proves it of every implementation.

Laws:
- the name of a blob is the SHA-256 of its bytes; a blob is there whole or not at all, also after a crash;
- putting equal bytes again changes nothing and costs no second copy; the media type told first stays;
- what `put` has returned survives a crash of the machine, as far as the medium keeps its word.
"""

import hashlib
import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from libs.faults.fault import Fault

CHUNK_BYTES = 256 * 1024
UNKNOWN_TYPE = "application/octet-stream"
ByteRange = tuple[int, int | None]
"""Half open, in bytes from the start: (0, 100) is the first hundred, (100, None) all after them."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[ -~]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Blob:
    """The facts about a blob: its name (64 hexadecimal digits), its length in bytes, its media type."""

    sha256: str
    bytes: int
    media_type: str


class Blobs(Protocol):
    """A store of blobs. Every method may raise Fault `governance_backend_down` if the medium does not answer."""

    async def put(
        self, source: bytes | AsyncIterable[bytes], media_type: str = UNKNOWN_TYPE, *, max_bytes: int | None = None
    ) -> Blob:
        """Keep the bytes. Idempotent. A source that raises leaves nothing behind.

        Raises Fault `payload_too_large` as soon as the source exceeds `max_bytes`, ValueError for a malformed type.
        """
        ...

    async def stat(self, sha256: str) -> Blob:
        """The facts about a blob. Raises Fault `not_found`."""
        ...

    def open(self, sha256: str, byte_range: ByteRange | None = None, *, verify: bool = False) -> AsyncIterator[bytes]:
        """The bytes, in chunks, or a range of them cut at the end of the blob.

        Raises, at the first step: Fault `not_found`; Fault `range_not_satisfiable` for a range that begins outside.
        With `verify` the whole blob is checked before the first chunk is given: CorruptBlob.
        """
        ...

    async def read(self, sha256: str) -> bytes:
        """All bytes, verified. For small blobs."""
        ...

    async def sweep(self) -> int:
        """Remove what uploads that were cut short have left; how many. Safe at any time."""
        ...


class CorruptBlob(Exception):
    """The bytes are not those that the name says. The medium is damaged: an operator's concern, not a caller's."""


def checked_digest(sha256: str) -> str:
    """The digest itself if it is one; Fault `not_found` if not, so that no path is ever made of foreign text."""
    if not _DIGEST.fullmatch(sha256):
        raise missing(sha256)
    return sha256


def checked_media_type(media_type: str) -> str:
    """The media type itself; ValueError if it is malformed."""
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise ValueError(f"{media_type[:80]!r} is not a media type; expected type/subtype")
    return media_type


def missing(sha256: str) -> Fault:
    """The Fault for a blob that is not there."""
    return Fault.of("not_found", f"artifact '{sha256[:64]}' does not exist")


def resolved(byte_range: ByteRange | None, blob: Blob) -> tuple[int, int]:
    """The range as (start, end) within the blob. Raises Fault `range_not_satisfiable`."""
    if byte_range is None:
        return 0, blob.bytes
    start, end = byte_range
    stop = blob.bytes if end is None else min(end, blob.bytes)
    if start < 0 or stop < start or start >= blob.bytes:
        raise Fault.of("range_not_satisfiable", f"bytes {start}-{'' if end is None else end - 1} of {blob.bytes}")
    return start, stop


async def verified(sha256: str, chunks: AsyncIterator[bytes]) -> bytes:
    """All bytes of the chunks. CorruptBlob if they are not those of the name."""
    content = b"".join([chunk async for chunk in chunks])
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CorruptBlob(f"blob {sha256} is damaged")
    return content


async def whole(sha256: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks as they come, the last one only once all together are those of the name: damaged bytes arrive nowhere
    as if they were whole. CorruptBlob in place of the last one."""
    digest, held = hashlib.sha256(), b""
    async with aclosing(chunks):  # type: ignore[type-var]  # a generator, as `Blobs.open` gives it
        async for chunk in chunks:
            digest.update(chunk)
            if held:
                yield held
            held = chunk
    if digest.hexdigest() != sha256:
        raise CorruptBlob(f"blob {sha256} is damaged")
    if held:
        yield held

"""What every store of blobs must keep, proved of each of them."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore, S3Store

from libs.blobs.blob import Blob, Blobs, CorruptBlob, whole
from libs.blobs.bucket import BucketBlobs
from libs.blobs.local import LocalBlobs
from libs.faults.fault import Fault

TEXT = b"a picture, or so"
NAME = hashlib.sha256(TEXT).hexdigest()
BIG = bytes(range(256)) * 4096  # 1 MiB, several chunks


@pytest.fixture(params=["local", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "local":
        return LocalBlobs(tmp_path / "blobs")
    return BucketBlobs(MemoryStore(), spool=tmp_path / "spool")


async def stream(*pieces: bytes, then: BaseException | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if then is not None:
        raise then


async def collected(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def into(seen: list[bytes], chunks: AsyncIterator[bytes]) -> None:
    """Keep the chunks that come, also where they break off."""
    async for chunk in chunks:
        seen.append(chunk)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_a_blob_is_named_by_its_bytes(blobs: Blobs) -> None:
    """Bytes and streams of the same content get the same name; size and media type are kept."""
    blob = await blobs.put(TEXT, "image/png")
    assert blob == Blob(NAME, len(TEXT), "image/png")
    assert await blobs.put(stream(TEXT[:3], b"", TEXT[3:]), "image/png") == blob
    assert await blobs.stat(NAME) == blob
    assert await collected(blobs.open(NAME)) == TEXT


async def test_putting_again_changes_nothing(blobs: Blobs) -> None:
    """put is idempotent, and the media type told first stays."""
    first = await blobs.put(TEXT, "image/png")
    assert await blobs.put(TEXT, "image/jpeg") == first
    assert (await blobs.stat(NAME)).media_type == "image/png"


async def test_many_put_the_same_at_once(blobs: Blobs) -> None:
    """Concurrent puts of equal bytes all succeed and leave one whole blob."""
    done = await asyncio.gather(*[blobs.put(stream(BIG[:1000], BIG[1000:]), "video/mp4") for _ in range(6)])
    assert set(done) == {done[0]}
    assert await blobs.read(done[0].sha256) == BIG


async def test_empty_content_is_a_blob(blobs: Blobs) -> None:
    """Nothing is content too."""
    blob = await blobs.put(b"", "text/plain")
    assert blob.bytes == 0
    assert await collected(blobs.open(blob.sha256, verify=True)) == b""


@pytest.mark.parametrize(
    "byte_range, expected",
    [
        ((0, 5), slice(0, 5)),
        ((5, None), slice(5, None)),
        ((300_000, 600_000), slice(300_000, 600_000)),
        ((len(BIG) - 1, len(BIG) + 50), slice(-1, None)),
        ((7, 7), slice(7, 7)),
        (None, slice(None)),
    ],
)
async def test_ranges(blobs: Blobs, byte_range: tuple[int, int | None] | None, expected: slice) -> None:
    """A range gives those bytes and no others, cut at the end of the blob; across chunks too."""
    blob = await blobs.put(BIG)
    assert await collected(blobs.open(blob.sha256, byte_range)) == BIG[expected]


@pytest.mark.parametrize("byte_range", [(len(TEXT), None), (99, 120), (-4, None), (5, 2)])
async def test_a_range_outside_is_refused(blobs: Blobs, byte_range: tuple[int, int | None]) -> None:
    """EDG-3: a range that begins outside the blob is `range_not_satisfiable`."""
    await blobs.put(TEXT)
    with pytest.raises(Fault) as caught:
        await collected(blobs.open(NAME, byte_range))
    assert caught.value.code == "range_not_satisfiable"


@pytest.mark.parametrize("name", [NAME, "", "x", "../../etc/passwd", NAME.upper(), NAME + "0", "\u0663" * 64])
async def test_a_missing_blob_is_not_found(blobs: Blobs, name: str) -> None:
    """A digest that nobody put and text that is no digest are answered alike."""
    with pytest.raises(Fault) as caught:
        await blobs.stat(name)
    assert caught.value.code == "not_found"
    with pytest.raises(Fault) as caught:
        await collected(blobs.open(name))
    assert caught.value.code == "not_found"


async def test_a_source_that_breaks_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    """A download that fails half-way leaves no blob and no file."""
    with pytest.raises(ConnectionResetError):
        await blobs.put(stream(BIG, then=ConnectionResetError()), "image/png")
    assert files(tmp_path) == []


async def test_too_much_is_refused_early(blobs: Blobs, tmp_path: Path) -> None:
    """EDG-3: content beyond the limit is `payload_too_large`, and the rest of the source is not read."""
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield b"x" * 300_000

    with pytest.raises(Fault) as caught:
        await blobs.put(endless(), max_bytes=700_000)
    assert caught.value.code == "payload_too_large"
    assert given == 3
    assert files(tmp_path) == []
    assert (await blobs.put(TEXT, max_bytes=len(TEXT))).sha256 == NAME


@pytest.mark.parametrize("media_type", ["", "png", "image/", "image/png\r\nX: y", "a/b\n"])
async def test_a_malformed_media_type_is_refused(blobs: Blobs, media_type: str) -> None:
    """A media type comes back in headers one day, so it must be one."""
    with pytest.raises(ValueError, match="media type"):
        await blobs.put(TEXT, media_type)


async def test_a_cancelled_put_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    """A caller that goes away leaves no file."""
    reading = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield BIG
        reading.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(blobs.put(slow()))
    await reading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files(tmp_path) == []


async def test_an_abandoned_read_lets_go(blobs: Blobs) -> None:
    """A reader that stops half-way closes what it opened."""
    blob = await blobs.put(BIG)
    chunks = blobs.open(blob.sha256)
    assert len(await anext(chunks)) > 0
    await chunks.aclose()
    assert await blobs.read(blob.sha256) == BIG


async def test_sweep_spares_uploads_at_work(tmp_path: Path) -> None:
    """Garbage of dead writers is removed, whatever its age; a living upload is not touched."""
    blobs = LocalBlobs(tmp_path)
    reading, go = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield BIG
        reading.set()
        await go.wait()
        yield TEXT

    task = asyncio.create_task(blobs.put(slow()))
    await reading.wait()
    (tmp_path / "incoming" / "dead.part").write_bytes(b"half")
    assert await blobs.sweep() == 1
    go.set()
    blob = await task
    assert await blobs.read(blob.sha256) == BIG + TEXT


async def test_damage_is_found_when_asked(tmp_path: Path) -> None:
    """Bytes that changed on the medium are not given out by a verified read."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put(TEXT)
    path = tmp_path / NAME[:2] / NAME
    path.chmod(0o644)
    path.write_bytes(TEXT[::-1])
    with pytest.raises(CorruptBlob):
        await blobs.read(NAME)
    with pytest.raises(CorruptBlob):
        await anext(blobs.open(NAME, verify=True))


async def test_damage_is_found_while_it_is_read(tmp_path: Path) -> None:
    """RUN-7: bytes that changed on the medium go out, but never to their end; sound ones go out whole."""
    blobs = LocalBlobs(tmp_path)
    name = (await blobs.put(BIG)).sha256
    assert await collected(whole(name, blobs.open(name))) == BIG
    path = tmp_path / name[:2] / name
    path.chmod(0o644)
    path.write_bytes(BIG[:-1] + b"!")
    seen: list[bytes] = []
    with pytest.raises(CorruptBlob):
        await into(seen, whole(name, blobs.open(name)))
    assert 0 < len(b"".join(seen)) < len(BIG)
    empty = (await blobs.put(b"")).sha256
    assert await collected(whole(empty, blobs.open(empty))) == b""


async def test_bytes_are_never_seen_without_their_type(tmp_path: Path) -> None:
    """The type is in place first: a crash between the two leaves a blob that is simply not there yet."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put(TEXT, "image/png")
    os.unlink(tmp_path / NAME[:2] / NAME)
    with pytest.raises(Fault):
        await blobs.stat(NAME)
    assert (await blobs.put(TEXT, "image/png")).media_type == "image/png"


async def test_a_disk_that_refuses_is_a_fault(tmp_path: Path) -> None:
    """A full or broken medium is `governance_backend_down`, in our own words."""
    blobs = LocalBlobs(tmp_path)
    await blobs.put(TEXT)
    other = hashlib.sha256(BIG).hexdigest()
    (tmp_path / other[:2]).write_text("a file where a folder should be")
    with pytest.raises(Fault) as caught:
        await blobs.put(BIG)
    assert caught.value.code == "governance_backend_down"
    assert await blobs.read(NAME) == TEXT


async def test_an_absent_object_store_is_a_fault(tmp_path: Path) -> None:
    """A bucket that does not answer is `governance_backend_down`, in our own words."""
    store = S3Store(
        "bucket", endpoint="http://127.0.0.1:1", access_key_id="a", secret_access_key="b", region="us-east-1",
        client_options={"allow_http": True, "timeout": "1s"}, retry_config={"max_retries": 0},
    )  # fmt: skip
    with pytest.raises(Fault) as caught:
        await BucketBlobs(store, spool=tmp_path).stat(NAME)
    assert caught.value.code == "governance_backend_down"

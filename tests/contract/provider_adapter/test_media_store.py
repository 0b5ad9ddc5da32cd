"""Every media store keeps the contract of its port."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.blobs.local import LocalBlobs
from libs.faults.fault import Fault
from services.provider_adapter.domain.media import digest
from services.provider_adapter.ports import MediaStore
from services.provider_adapter.store.media import BlobMedia
from tests.unit.provider_adapter.fakes import MemoryMedia

DATA = b"some bytes of a clip"


@pytest.fixture(params=["memory", "blobs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MediaStore:
    """An empty store."""
    return MemoryMedia() if request.param == "memory" else BlobMedia(LocalBlobs(tmp_path / "blobs"))


async def chunks(*parts: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    """A stream, that may break at its end."""
    for part in parts:
        yield part
    if error is not None:
        raise error


async def test_what_is_kept_is_found_by_its_digest(store: MediaStore) -> None:
    """EVENT-1: the digest is that of the bytes, and gives them back with their type."""
    kept = await store.keep(chunks(DATA[:5], DATA[5:]), "video/mp4", 1000)
    assert (kept.sha256, kept.size_bytes, kept.media_type) == (digest(DATA), len(DATA), "video/mp4")
    content = await store.content(kept.sha256, 1000)
    assert (content.data, content.media_type) == (DATA, "video/mp4")
    assert await store.about(kept.sha256) == kept


async def test_what_breaks_or_is_too_large_is_not_kept(store: MediaStore) -> None:
    """ERR-1a: half a result is no result."""
    with pytest.raises(ConnectionError):
        await store.keep(chunks(DATA, error=ConnectionError()), "video/mp4", 1000)
    with pytest.raises(Fault) as caught:
        await store.keep(chunks(DATA), "video/mp4", len(DATA) - 1)
    assert caught.value.code == "payload_too_large"
    for look in (store.content(digest(DATA), 1000), store.about(digest(DATA))):
        with pytest.raises(Fault) as missing:
            await look
        assert missing.value.code == "material_unreachable"


async def test_a_material_that_is_too_large_is_not_sent(store: MediaStore) -> None:
    """ERR: what cannot travel within a request is refused before it is read."""
    kept = await store.keep(chunks(DATA), "video/mp4", 1000)
    with pytest.raises(Fault) as caught:
        await store.content(kept.sha256, len(DATA) - 1)
    assert caught.value.code == "material_unreachable"

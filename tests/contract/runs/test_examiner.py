"""The examiner over real files and a routing that reads: facts, damage, and what is asked of whom."""

import io
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.type import money_pb2
from PIL import Image, ImageDraw

from libs.blobs.local import LocalBlobs
from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.channels import Channels
from libs.rpc.loopback import LoopbackRegistry
from libs.rpc.server import RpcServer
from pointsman.routing.v1 import routing_service_pb2 as pb
from pointsman.routing.v1.routing_service_pb2_grpc import RoutingServiceServicer, add_RoutingServiceServicer_to_server
from services.runs.domain.judging import alike, verified
from services.runs.domain.run import Artifact
from services.runs.peers.examiner import BlobExaminer
from tests.support import media
from tests.support.worlds import CountedIds


class Reader(RoutingServiceServicer):
    """A routing whose every picture says the same."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fault: Fault | None = None

    async def Invoke(self, request: Any, context: Any) -> Any:
        """The words, for a price."""
        self.asked.append(request)
        if self.fault is not None:
            raise self.fault
        reply = pb.InvokeResponse(output=b'{"text": "SALE"}')
        reply.call.cost.CopyFrom(money_pb2.Money(currency_code="CNY", nanos=10_000_000))
        return reply


@pytest.fixture
def reader() -> Reader:
    """The routing behind the door."""
    return Reader()


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    """A store on disk."""
    return LocalBlobs(tmp_path)


@pytest.fixture
async def examiner(reader: Reader, blobs: LocalBlobs) -> AsyncIterator[BlobExaminer]:
    """The examiner at its door."""
    registry = LoopbackRegistry()
    server = RpcServer(registry=registry)
    server.add(lambda target: add_RoutingServiceServicer_to_server(reader, target))
    await server.start()
    async with Channels(registry=registry, caller="runs") as channels:
        yield BlobExaminer(blobs, channels.to("routing"), CountedIds())
    await server.close()


async def kept(blobs: LocalBlobs, content: bytes, media_type: str = "application/octet-stream") -> Artifact:
    """An artifact in the store."""
    blob = await blobs.put(content, media_type)
    return Artifact(blob.sha256, media_type, blob.bytes)


def drawing(form: str = "PNG", width: int = 160, mirrored: bool = False) -> bytes:
    """A picture with a composition of its own."""
    picture = Image.new("RGB", (160, 90), (20, 30, 60))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((10, 10, 70, 70), fill=(250, 220, 120))
    draw.polygon(((90, 85), (120, 30), (155, 85)), fill=(90, 140, 90))
    if mirrored:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    content = io.BytesIO()
    picture.resize((width, width * 9 // 16)).save(content, form)
    return content.getvalue()


async def test_files_are_measured_by_what_they_are(examiner: BlobExaminer, blobs: LocalBlobs) -> None:
    """RUN-7: a picture has pixels, a clip lasts and shows its streams, a sound lasts, a text is read."""
    picture = await examiner.examine("t", await kept(blobs, media.picture(64, 36)))
    assert (picture.media_type, picture.width, picture.height) == ("image/png", 64, 36)
    clip = await examiner.examine("t", await kept(blobs, media.clip(1.0)))
    assert (clip.width, clip.streams) == (128, {"video"})
    assert clip.duration_s == pytest.approx(1.0, abs=0.05)
    sound = await examiner.examine("t", await kept(blobs, media.sound(1.0)))
    assert (sound.streams, sound.width) == ({"audio"}, 0)
    text = await examiner.examine("t", await kept(blobs, b"a line", "text/plain"))
    brought = await examiner.examine("t", Artifact(text.sha256, "", 0))
    assert brought == text, "the store knows the type of a file that nobody here has made"
    assert [verified(facts) for facts in (picture, clip, sound, text)] == [None] * 4


async def test_what_is_missing_damaged_or_broken_is_told(
    examiner: BlobExaminer, blobs: LocalBlobs, tmp_path: Path
) -> None:
    """RUN-7: not there, cut short, other bytes than its digest names, nothing at all: each is a reason, not a fault."""
    missing = await examiner.examine("t", Artifact("0" * 64, "image/png", 1))
    assert verified(missing) == "is not in the store"
    broken = await examiner.examine("t", await kept(blobs, drawing()[:400]))
    assert verified(broken) == "is a broken picture"
    cut = await examiner.examine("t", await kept(blobs, media.clip(1.0)[:-600]))
    assert verified(cut)
    noise = await examiner.examine("t", await kept(blobs, b"nothing that is known"))
    assert verified(noise) == "is of a type that cannot be measured"
    empty = await examiner.examine("t", await kept(blobs, b""))
    assert verified(empty) == "is empty"
    latin = await examiner.examine("t", await kept(blobs, b"\xff\xfe\xfd", "text/plain"))
    assert verified(latin) == "is no text in UTF-8"


async def test_a_copy_that_changed_is_noticed_at_every_look(
    examiner: BlobExaminer, blobs: LocalBlobs, tmp_path: Path
) -> None:
    """RUN-7: what was sound once is compared with its digest again."""
    artifact = await kept(blobs, media.picture(64, 36))
    assert verified(await examiner.examine("t", artifact)) is None
    (path,) = [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size == artifact.size_bytes]
    path.chmod(0o600)
    path.write_bytes(media.picture(65, 36))
    assert "is damaged" in str(verified(await examiner.examine("t", artifact)))


async def test_pictures_that_look_alike_have_like_fingerprints(examiner: BlobExaminer, blobs: LocalBlobs) -> None:
    """GATE-1: another size and format of one picture is alike, another composition is not."""
    one, other, mirrored = [
        (await examiner.examine("t", await kept(blobs, content))).fingerprint
        for content in (drawing(), drawing("JPEG", 320), drawing(mirrored=True))
    ]
    assert alike(one, other) > 0.9
    assert alike(one, mirrored) < 0.8


async def test_words_are_read_once_by_the_model_that_is_named(
    examiner: BlobExaminer, blobs: LocalBlobs, reader: Reader
) -> None:
    """GATE-1: text goes through a public model, for its tenant, and the same bytes are not paid for twice."""
    artifact = await kept(blobs, media.picture(64, 36))
    first = await examiner.examine("t", artifact, ["page-reader"])
    again = await examiner.examine("t", artifact, ["page-reader"])
    assert first.words == again.words == {"page-reader": "SALE"}
    assert (first.spent, again.spent) == ((Money("CNY", Decimal("0.01")),), ())
    (asked,) = reader.asked
    assert (asked.tenant, asked.model, asked.kind) == ("t", "page-reader", "ocr")
    assert json.loads(asked.input)["image"] == {"artifact": artifact.sha256}


async def test_only_pictures_are_read(examiner: BlobExaminer, blobs: LocalBlobs, reader: Reader) -> None:
    """GATE-1: a sound has no words to look for, and nobody is asked."""
    facts = await examiner.examine("t", await kept(blobs, media.sound(1.0)), ["page-reader"])
    assert (facts.words, reader.asked) == ({}, [])


async def test_a_reader_that_fails_is_a_fault(examiner: BlobExaminer, blobs: LocalBlobs, reader: Reader) -> None:
    """GATE-1: not being able to look is no judgement: it is retried, never counted against the file."""
    reader.fault = Fault.of("no_candidates", "nobody reads")
    artifact = await kept(blobs, media.picture(64, 36))
    with pytest.raises(Fault) as raised:
        await examiner.examine("t", artifact, ["page-reader"])
    assert raised.value.code == "no_candidates"

"""Pixels and seconds of files as they pass by, in pieces of any size."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.provider_adapter.domain.measures import UNMEASURED, Measures, Measuring
from services.provider_adapter.domain.outcomes import Stored
from services.provider_adapter.wire import artifact_to_proto


def box(name: bytes, body: bytes) -> bytes:
    """A box of an MP4."""
    return struct.pack(">I4s", 8 + len(body), name) + body


def track(width: int, height: int) -> bytes:
    """A track of that size."""
    return box(b"trak", box(b"tkhd", bytes(76) + struct.pack(">II", width << 16, height << 16)) + box(b"mdia", b""))


SHORT = box(b"mvhd", bytes(12) + struct.pack(">II", 1000, 5040) + bytes(80))
LONG = box(b"mvhd", b"\x01" + bytes(19) + struct.pack(">IQ", 600, 3024) + bytes(80))
TRACKS = track(0, 0) + track(1280, 720)
DATA = box(b"mdat", bytes(300_000))
HEAD = box(b"ftyp", b"isom" + bytes(8))
FILM = Measures(1280, 720, 5.04)
FILMS = {
    "index first": (HEAD + box(b"moov", SHORT + TRACKS) + DATA, FILM),
    "index last": (HEAD + DATA + box(b"moov", LONG + TRACKS), FILM),
    "wide box": (HEAD + struct.pack(">I4sQ", 1, b"mdat", 1016) + bytes(1000) + box(b"moov", SHORT + TRACKS), FILM),
    "no index": (HEAD + DATA, UNMEASURED),
    "no scale": (HEAD + box(b"moov", box(b"mvhd", bytes(100)) + TRACKS), Measures(1280, 720)),
    "empty index": (HEAD + box(b"moov", b""), UNMEASURED),
    "cut header": (HEAD + box(b"moov", box(b"mvhd", b"\x00")), UNMEASURED),
    "small box": (HEAD + struct.pack(">I4s", 3, b"moov") + bytes(99), UNMEASURED),
    "huge index": (HEAD + struct.pack(">I4s", 2**31, b"moov") + bytes(99), UNMEASURED),
}
WAVE = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 24_000, 48_000, 2, 16)
OTHERS = {
    "png": (b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 512, 768) + bytes(9), Measures(512, 768)),
    "gif": (b"GIF89a" + struct.pack("<HH", 320, 200) + bytes(9), Measures(320, 200)),
    "jpeg": (
        b"\xff\xd8\xff\xe0\x00\x10" + bytes(14) + b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 600, 800) + bytes(9),
        Measures(800, 600),
    ),
    "jpeg without a frame": (b"\xff\xd8\xff\xd9" + bytes(40), UNMEASURED),
    "webp": (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x3f\x02\0\xff\x01\0", Measures(576, 512)),
    "webp lossless": (
        b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(9),
        Measures(640, 480),
    ),
    "webp lossy": (b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480) + bytes(9), Measures(640, 480)),
    "wave": (WAVE + b"LIST\x03" + bytes(7) + b"data" + struct.pack("<I", 72_000), Measures(0, 0, 1.5)),
    "wave without a rate": (b"RIFF\0\0\0\0WAVEdata" + struct.pack("<I", 9), UNMEASURED),
    "text": (b"<html>nothing of the kind</html>" * 9, UNMEASURED),
    "empty": (b"", UNMEASURED),
}  # fmt: skip


def measured(data: bytes, pieces: int = 65_536) -> Measures:
    """The measures of a file that comes in pieces of that size."""
    measuring = Measuring()
    for start in range(0, len(data), pieces):
        measuring.feed(data[start : start + pieces])
    return measuring.measures()


@pytest.mark.parametrize("pieces", [7, 4096, 2**30])
@pytest.mark.parametrize("name", [*FILMS, *OTHERS])
def test_a_file_is_measured_while_it_passes(name: str, pieces: int) -> None:
    """OPS-6: size and length of what was delivered are witnesses of `cost_drift`, however the bytes came."""
    data, expected = {**FILMS, **OTHERS}[name]
    assert measured(data, pieces) == expected


@given(st.sampled_from([data for data, _ in (*FILMS.values(), *OTHERS.values())]), st.data())
def test_no_file_is_too_broken_to_be_passed_on(data: bytes, draw: st.DataObject) -> None:
    """OPS-6: a file that is cut short or spoilt has some measures or none, and never an error."""
    end = draw.draw(st.integers(0, min(len(data), 2_000)))
    at = draw.draw(st.integers(0, max(0, end - 1)))
    spoilt = data[:at] + draw.draw(st.binary(max_size=8)) + data[at:end]
    found = measured(spoilt, draw.draw(st.integers(1, 300)))
    assert found.width >= 0 <= found.duration_s
    artifact_to_proto(Stored("0" * 64, "video/mp4", 1, found))


def test_a_real_picture() -> None:
    """OPS-6: a PNG with all its chunks."""
    rows = zlib.compress(b"".join(b"\0" + bytes(3 * 6) for _ in range(4)))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 6, 4, 8, 2, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    assert measured(png, 5) == Measures(6, 4)

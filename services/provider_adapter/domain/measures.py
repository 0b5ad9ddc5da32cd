"""How large a picture is and how long a film, from the file itself while it passes by: no second reading, no decoder.

Laws of this file:
- nothing here may hold up or spoil a result: what cannot be measured has no measures;
- what is kept while measuring is bounded, whatever a file says of itself.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

HEAD_BYTES = 256 * 1024
"""Of pictures and sound: their measures stand near the beginning."""
INDEX_BYTES = 4 * 1024 * 1024
"""Of an MP4's index, which may stand at its end."""
LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Measures:
    """Pixels and seconds; 0 = not known."""

    width: int = 0
    height: int = 0
    duration_s: float = 0.0


UNMEASURED = Measures()


class Measuring:
    """Told a file piece by piece."""

    def __init__(self) -> None:
        self._head = b""
        self._index = _Mp4Index()

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        if len(self._head) < HEAD_BYTES:
            self._head += piece[: HEAD_BYTES - len(self._head)]
        self._index.feed(piece)

    def measures(self) -> Measures:
        """What is known at the end."""
        try:
            return self._index.measures() or _of_head(self._head) or UNMEASURED
        except (struct.error, IndexError):  # cut short, or no such file after all
            return UNMEASURED


# --- Films ------------------------------------------------------------------------------------------------------------


class _Mp4Index:
    """Skips from box to box until `moov` has passed by."""

    def __init__(self) -> None:
        self._held = b""
        self._skip = 0
        self._dead = False
        self._moov = b""

    def feed(self, piece: bytes) -> None:
        if self._dead or self._moov:
            return
        if self._skip >= len(piece):
            self._skip -= len(piece)
            return
        self._held += piece[self._skip :]
        self._skip = 0
        while not (self._dead or self._moov) and len(self._held) >= 16 and self._step():
            pass

    def _step(self) -> bool:
        """Whether one more box was passed."""
        size, name = struct.unpack(">I4s", self._held[:8])
        size = struct.unpack(">Q", self._held[8:16])[0] if size == 1 else size
        if size < 8 or not name.isalnum() or (name == b"moov" and size > INDEX_BYTES):
            self._dead = True
        elif name == b"moov":
            if len(self._held) < size:
                return False
            self._moov = self._held[8:size]
        else:
            self._skip = max(0, size - len(self._held))
            self._held = self._held[size:]
            return not self._skip
        self._held = b""
        return False

    def measures(self) -> Measures | None:
        if not self._moov:
            return None
        boxes = list(_boxes(self._moov))
        tracks = [part for name, body in boxes if name == b"trak" for part in _boxes(body)]
        sizes = [_track_size(body) for name, body in tracks if name == b"tkhd"]
        width, height = max(sizes, key=lambda size: size[0] * size[1], default=(0, 0))
        return Measures(width, height, next((_seconds(body) for name, body in boxes if name == b"mvhd"), 0.0))


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    while len(data) >= 8:
        size, name = struct.unpack(">I4s", data[:8])
        if size < 8:
            return
        yield name, data[8:size]
        data = data[size:]


def _track_size(body: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", body[-8:])  # 16.16 fixed point
    return width >> 16, height >> 16


def _seconds(body: bytes) -> float:
    wide = body[0] == 1
    scale, length = struct.unpack(">IQ" if wide else ">II", body[20:32] if wide else body[12:20])
    seconds = length / scale if scale else 0.0
    return seconds if seconds < LONGEST_S else 0.0


# --- Pictures and sound -----------------------------------------------------------------------------------------------


def _of_head(head: bytes) -> Measures | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Measures(*struct.unpack(">II", head[16:24]))
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return Measures(*struct.unpack("<HH", head[6:10]))
    if head.startswith(b"\xff\xd8"):
        return _of_jpeg(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _of_webp(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return _of_wave(head)
    return None


_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def _of_jpeg(head: bytes) -> Measures | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        if head[at + 1] in _FRAMES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return Measures(width, height)
        at += 2 + struct.unpack(">H", head[at + 2 : at + 4])[0]
    return None


def _of_webp(head: bytes) -> Measures | None:
    form = head[12:16]
    if form == b"VP8X":
        return Measures(*(1 + int.from_bytes(head[at : at + 3], "little") for at in (24, 27)))
    if form == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return Measures((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", head[26:30])
    return Measures(width & 0x3FFF, height & 0x3FFF)


def _of_wave(head: bytes) -> Measures | None:
    at, rate = 12, 0
    while at + 8 <= len(head):
        name, size = struct.unpack("<4sI", head[at : at + 8])
        if name == b"fmt ":
            rate = struct.unpack("<I", head[at + 16 : at + 20])[0]
        elif name == b"data":
            return Measures(duration_s=size / rate) if rate and size / rate < LONGEST_S else None
        at += 8 + size + size % 2
    return None

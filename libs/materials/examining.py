"""What a finished work is: its measures and its streams, for a check that wants more than a size.

A film may have lost its sound or its lines and still play; whoever accepts one asks here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from libs.materials.limits import ACCEPTED, Measures
from libs.materials.probing import READERS, STREAM, Unreadable, probe, read_packets
from libs.materials.sniffing import SNIFF_BYTES, sniff

_SIDES = re.compile(r"\b(\d{1,6})x(\d{1,6})\b")
_RATE = re.compile(r"\b([\d.]+) fps")
_LENGTH = re.compile(r"^  Duration: (\d+):(\d\d):(\d\d\.\d+)", re.MULTILINE)
BORNE_OUT_S = 0.25
_TIME = re.compile(r"out_time_us=(\d+)")


@dataclass(frozen=True, slots=True)
class Streams:
    """What a file holds. `video` and `audio` name the codec of the first such stream (h264, aac; "" = none),
    `frame_rate` is in frames a second (0 where not told), `subtitles` counts the tracks of lines to read."""

    video: str = ""
    audio: str = ""
    subtitles: int = 0
    frame_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Examined:
    """Measures with the streams behind them; a picture has none."""

    measures: Measures
    streams: Streams = Streams()


async def examine(path: Path, *, decoding: bool = False) -> Examined:
    """Look at a picture, clip, film or sound. Unreadable, with the reason.

    A picture is always decoded. Of what has a duration every packet is read, and with `decoding` every frame decoded:
    the first broken one ends it. A file's head is believed in its length where the packets bear it out.
    """
    with path.open("rb") as file:
        media_type = sniff(file.read(SNIFF_BYTES))
    if media_type.startswith("image/"):
        return Examined(await probe(path, media_type, "image", ACCEPTED["image"].pixels))
    told, progress = await read_packets(path, READERS.get(media_type, ""), decoding)
    held = STREAM.findall(told.partition("\nOutput #")[0])
    kinds = dict(reversed(held))
    times = _TIME.findall(progress)
    if not times or not (kinds.keys() & {"Video", "Audio"}):
        raise Unreadable("holds no pictures and no sound that can be read")
    pictures = kinds.get("Video", "")
    sides, rate = _SIDES.search(pictures), _RATE.search(pictures)
    width, height = (int(sides[1]), int(sides[2])) if sides else (0, 0)
    return Examined(
        Measures(media_type, path.stat().st_size, width, height, _seconds(told, int(times[-1]) / 1e6)),
        Streams(
            video=_codec(pictures),
            audio=_codec(kinds.get("Audio", "")),
            subtitles=sum(kind == "Subtitle" for kind, _ in held),
            frame_rate=float(rate[1]) if rate else 0.0,
        ),
    )


def _seconds(told: str, read: float) -> float:
    """Of packets the last one's beginning may be all there is to read, which is a frame or two too early."""
    head = _LENGTH.search(told)
    said = int(head[1]) * 3600 + int(head[2]) * 60 + float(head[3]) if head else read
    return said if abs(said - read) <= BORNE_OUT_S else read


def _codec(told: str) -> str:
    return re.split(r"[ ,(]", told, maxsplit=1)[0]
